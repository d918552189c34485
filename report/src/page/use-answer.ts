// Answers of the engine in components.

import { useEffect, useState } from "preact/hooks";

export interface Answer<T> {
  value: T | undefined;
  /** Whether a newer answer is on its way. */
  isPending: boolean;
  error: string | undefined;
}

/**
 * Returns the engine's answer to a query, which is repeated when its key changes. The previous answer stays until the new one
 * comes.  const { value, isPending } = useAnswer(JSON.stringify(selection.value), () => query("table", selection.value));
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
