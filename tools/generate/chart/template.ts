import { stringifyAll } from '../manifests/yaml.ts';

/**
 * Helm expressions within objects. These are strings and keys between two private characters, which can't be part of
 * the text, and become actions when the objects are rendered as YAML.
 */
const [OPEN, CLOSE] = ['\uE000', '\uE001'];

/** Returns a scalar or a part of a scalar. */
export function expression(code: string): string {
  return `${OPEN}${code}${CLOSE}`;
}

/** Returns a list or an object. */
export function tree(code: string): string {
  return `${OPEN}tree ${code}${CLOSE}`;
}

let count = 0;

/** Returns fields inside of a block, e.g. `if $.Values.x`. */
export function block(head: string, fields: object | readonly unknown[]): object {
  return { [`${OPEN}block ${++count} ${head}${CLOSE}`]: fields };
}

/** Returns optional fields of a list or an object. */
export function fieldsOf(code: string): object {
  return { [`${OPEN}spread ${++count} ${code}${CLOSE}`]: null };
}

/** Returns optional items of a list. */
export function itemsOf(code: string): string {
  return `${OPEN}spread ${++count} ${code}${CLOSE}`;
}

const BLOCK = /^( *)(- )?"?\uE000block \d+ (.*)\uE001"?:$/;
const SPREAD = /^( *)(- )?"?\uE000spread \d+ (.*)\uE001"?(: null)?$/;
const TREE = /^( *)(- )?([^\uE000]+): \uE000tree (.*)\uE001$/;
/** Matches a name that is a complete scalar. Without quotes, a name that only contains digits would be a number. */
const NAME = /(: |- )\uE000(\$\.Release\.\w+)\uE001$/gm;
const indentOf = (line: string) => line.length - line.trimStart().length;

/** Returns the objects as a template, using `condition` (if there is one) for the whole template. */
export function renderTemplate(objects: readonly object[], condition?: string): string {
  const yaml = stringifyAll(objects, 0).replaceAll('{{', '{{ "{{" }}');
  const text = expand(yaml.trimEnd().split('\n'))
    .join('\n')
    .replaceAll(NAME, '$1\uE000$2 | quote\uE001')
    .replaceAll(/\uE000([^\uE001]*)\uE001/g, (_, code: string) => {
      // If YAML added quotes, they would end at the quotes of the expression.
      if (code.includes('\\"')) throw new Error(`this expression must not be quoted in YAML: ${code}`);
      return `{{ ${code} }}`;
    });
  return condition === undefined ? `${text}\n` : `{{- if ${condition} }}\n${text}\n{{- end }}\n`;
}

function expand(lines: readonly string[]): string[] {
  const out: string[] = [];
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] as string;
    const block = BLOCK.exec(line);
    if (block) {
      const [, indent = '', item, head = ''] = block;
      let end = i + 1;
      while (end < lines.length && indentOf(lines[end] as string) > indent.length) end++;
      // The body is indented one level deeper than in the result, and list items two levels deeper.
      const body = lines.slice(i + 1, end).map(each => each.slice(item === undefined ? 2 : 4));
      out.push(`${indent}{{- ${head} }}`, ...expand(body), `${indent}{{- end }}`);
      i = end - 1;
    } else out.push(...expandLine(line));
  }
  return out;
}

function expandLine(line: string): string[] {
  const spread = SPREAD.exec(line);
  if (spread) {
    const [, indent = '', , code = ''] = spread;
    return [
      `${indent}{{- with ${code} }}`,
      `${indent}{{- toYaml . | nindent ${indent.length} }}`,
      `${indent}{{- end }}`,
    ];
  }
  const found = TREE.exec(line);
  if (!found) return [line];
  const [, indent = '', item = '', key = '', code = ''] = found;
  const depth = indent.length + item.length + 2;
  return [`${indent}${item}${key}:`, `${' '.repeat(depth)}{{- toYaml (${code}) | nindent ${depth} }}`];
}
