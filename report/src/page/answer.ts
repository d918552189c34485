// Answers of the engine in components.

import { useEffect, useState } from "preact/hooks";

export interface Answer<T> {
  value: T | undefined;
  /** Whether a newer answer is on its way. */
  isPending: boolean;
  error: string | undefined;
}

/**
 * What the engine says to a question, which is asked again when its key changes. Until then the answer before stays.
 *
 *     const { value, isPending } = useAnswer(JSON.stringify(selection.value), () => ask("table", selection.value));
 */
export function useAnswer<T>(key: string, question: () => Promise<T>): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ value: undefined, isPending: true, error: undefined });
  useEffect(() => {
    let isCurrent = true;
    setAnswer((before) => ({ ...before, isPending: true }));
    question().then(
      (value) => isCurrent && setAnswer({ value, isPending: false, error: undefined }),
      (error: Error) => isCurrent && setAnswer({ value: undefined, isPending: false, error: error.message }),
    );
    return () => {
      isCurrent = false;
    };
  }, [key]);
  return answer;
}
