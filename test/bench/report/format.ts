import { type Correctness, type Figure, reaches } from './figures.ts';

function number(value: number): string {
  if (Number.isNaN(value)) return 'n/a';
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2);
}

function cells({ value, target, ...figure }: Figure): string[] {
  const reached = reaches({ value, ...(target === undefined ? {} : { target }), ...figure });
  return [
    figure.name,
    number(value.median),
    value.values.length > 1 ? `${number(value.min)}-${number(value.max)}` : '',
    target === undefined ? '' : `${target.sign} ${number(target.limit)}`,
    reached === undefined ? '' : reached ? 'ok' : 'short',
    figure.detail,
  ];
}

/** Returns a Markdown table, with columns aligned for terminals. */
export function formatFigures(figures: readonly Figure[]): string {
  const rows = [['figure', 'median', 'min-max', 'target', '', 'of'], ...figures.map(cells)];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map(row => (row[column] as string).length))) ?? [];
  const lines = rows.map(row => `| ${row.map((cell, column) => cell.padEnd(widths[column] as number)).join(' | ')} |`);
  const rule = `|${widths.map(width => '-'.repeat(width + 2)).join('|')}|`;
  return [lines[0], rule, ...lines.slice(1)].join('\n');
}

/** Returns a line with the counts of missing, repeated, and reordered deliveries. */
export function formatCorrectness(pipe: string, { deliveries, missing, duplicates, outOfOrder }: Correctness): string {
  return `${pipe}: ${deliveries.toLocaleString('en')} deliveries expected, ${missing} missing, ${duplicates} twice, ${outOfOrder} out of order`;
}
