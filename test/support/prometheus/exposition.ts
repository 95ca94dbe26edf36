/** A sample in the text format of Prometheus. */
export interface Series {
  /** The name of the sample, which ends with `_bucket`, `_sum`, or `_count` for a histogram. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Parses a `/metrics` response. */
export function parseExposition(text: string): Series[] {
  return text.split('\n').flatMap(line => {
    const [, name, labels = '', value] = SAMPLE.exec(line) ?? [];
    if (name === undefined) return [];
    const pairs = [...labels.matchAll(LABEL)].map(([, label = '', of = '']) => [label, of] as const);
    return [
      {
        name,
        labels: Object.fromEntries(pairs),
        value: value === 'Nan' || value === 'NaN' ? Number.NaN : Number(value),
      },
    ];
  });
}

/** Returns the identity of a series. */
export function keyOfSeries({ name, labels }: Series): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return `${name}{${pairs.toSorted().join(',')}}`;
}
