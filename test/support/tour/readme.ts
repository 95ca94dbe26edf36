/** A fenced block of shell commands, and the text that the page shows as its output, if any. */
export type Example = {
  readonly commands: string;
  /** Lines; `…` in one stands for anything within a line. */
  readonly output: readonly string[];
};

/** The `sh` blocks of a Markdown page, in order, each with the `text` block that follows it directly. */
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

/** The lines that are missing in `actual`: each has to follow the one before it. */
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
