/** The cells of a row in Markdown. */
export type Row = readonly string[];

/** Renders a table in GitHub's Markdown. Escapes pipes and line breaks. */
export function table(head: Row, rows: readonly Row[]): string {
  const line = (cells: Row): string => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function cell(text: string): string {
  return escapeMarkup(text.replaceAll('|', '\\|').replaceAll('\n', ' '));
}

/** Escapes `<` outside of code. GitHub treats `<name>` as an HTML element and does not display it. */
export function escapeMarkup(text: string): string {
  const parts = text.split('`');
  return parts.map((part, index) => (index % 2 === 1 ? part : part.replaceAll('<', '&lt;'))).join('`');
}
