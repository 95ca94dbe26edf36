/**
 * The value of one series in Prometheus' text format (exposition format 0.0.4); 0 when it is not there, because
 * a counter with labels appears with its first increment.
 *
 * @param labels all of the series' labels, in any order
 */
export function metricValue(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const wanted = Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .toSorted()
    .join();
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (match === null || match[1] !== name) continue;
    const found = [...(match[2] ?? '').matchAll(/\w+="(?:[^"\\]|\\.)*"/g)].map(([label]) => label).toSorted();
    if (found.join() === wanted) return Number(match[3]);
  }
  return 0;
}
