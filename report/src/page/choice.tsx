// A choice of one of a few options, as adjacent buttons.

export interface Option<T extends string> {
  value: T;
  label: string;
  title?: string;
}

export function Choice<T extends string>(properties: {
  label: string;
  value: T;
  options: Option<T>[];
  choose(value: T): void;
}) {
  const { label, value, options, choose } = properties;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset can't be laid out in a bar.
    <span class="choice" role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          title={option.title ?? option.label}
          onClick={() => choose(option.value)}
        >
          {option.label}
        </button>
      ))}
    </span>
  );
}
