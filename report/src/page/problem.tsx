/** Says that something went wrong, and why. */
export function Problem({ what, why }: { what: string; why: string }) {
  return (
    <p class="problem" role="alert">
      {what}: {why}.
    </p>
  );
}
