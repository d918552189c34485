/** Shows the logo of Stackweave: a warm and a cool thread, woven. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 24 24" width="20" height="20" role="img" aria-label="Stackweave">
      <path class="warm" d="M3 8 H9 M15 8 H21 M3 16 H21" />
      <path class="cool" d="M8 3 V21 M16 3 V13 M16 19 V21" />
    </svg>
  );
}
