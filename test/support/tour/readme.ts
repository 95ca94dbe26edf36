/** A fenced block of shell commands, and the output that the page shows, if any. */
export type Example = {
  readonly commands: string;
  /** The lines of the output. `…` represents any text within a line. */
  readonly output: readonly string[];
};

/** Returns the `sh` blocks of a Markdown page, each with the `text` block immediately following it. */
export function readExamples(page: string): Example[] {
  const blocks = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)];
  return blocks.flatMap(([whole, language, commands = ''], index) => {
    if (language !== 'sh') return [];
    const next = blocks[index + 1];
    const end = (blocks[index]?.index ?? 0) + whole.length;
    const follows = next?.[1] === 'text' && page.slice(end, next.index).trim() === '';
    return [{ commands, output: follows ? (next[2] ?? '').trimEnd().split('\n') : [] }];
  });
}

/** Returns the lines missing from `actual`. Each line must come after the previous one. */
export function missingLines(expected: readonly string[], actual: string): string[] {
  let rest = actual;
  return expected.filter(line => {
    const pattern = line
      .split('…')
      .map(part => part.trim().replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`))
      .join('.*');
    const found = new RegExp(pattern).exec(rest);
    if (found === null) return true;
    rest = rest.slice(found.index + found[0].length);
    return false;
  });
}
