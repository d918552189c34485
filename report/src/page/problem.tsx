/** Reports a failure and its reason. */
export function Problem({ what, why }: { what: string; why: string }) {
  return (
    <p class="problem" role="alert">
      {what}: {why}.
    </p>
  );
}
