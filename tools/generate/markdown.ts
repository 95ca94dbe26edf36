/** The cells of one row, as Markdown. */
export type Row = readonly string[];

/** A table in GitHub's Markdown. What would end a cell or a row is escaped. */
export function table(head: Row, rows: readonly Row[]): string {
  const line = (cells: Row): string => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function cell(text: string): string {
  return escapeMarkup(text.replaceAll('|', '\\|').replaceAll('\n', ' '));
}

/** Outside of code, `<name>` would be taken for an HTML element and vanish. */
export function escapeMarkup(text: string): string {
  const parts = text.split('`');
  return parts.map((part, index) => (index % 2 === 1 ? part : part.replaceAll('<', '&lt;'))).join('`');
}
