import { z } from 'zod';
import { stringifyOne } from '../manifests/yaml.ts';
import { type Row, table } from '../markdown.ts';
import { Values } from './values/values.ts';

/** The parts of JSON Schema used for the values. */
interface Node {
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly type?: string;
  readonly required?: readonly string[];
  /** True if null has a meaning although there is a default. */
  readonly nullable?: boolean;
}

function schema(): Node {
  return z.toJSONSchema(Values, { io: 'input', target: 'draft-7' }) as unknown as Node;
}

/**
 * Returns values.schema.json. Defaults are not included because they are in values.yaml. Helm removes a default if the
 * user sets it to null, so all values that the templates need are required.
 */
export function renderSchema(): string {
  return `${JSON.stringify(adapt(schema()), null, 2)}\n`;
}

function adapt(described: Node): Node {
  const { default: _, nullable: __, properties, ...node } = described;
  if (properties === undefined) return node;
  const required = Object.entries(properties).flatMap(([name, each]) => (isNeeded(each) ? [name] : []));
  const adapted = Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, adapt(each)]));
  return { ...node, properties: adapted, ...(required.length === 0 ? {} : { required }) };
}

/**
 * Returns true for sections, and for values with a default that is not empty. Without such a value, pods would not
 * start, or a NetworkPolicy would allow every port. Objects of Kubernetes can be missing.
 */
function isNeeded({ properties, type, nullable, default: fallback }: Node): boolean {
  if (type === 'object') return properties !== undefined;
  return !nullable && fallback !== '' && !(Array.isArray(fallback) && fallback.length === 0);
}

/** Returns values.yaml with all values and their defaults, each below its description. */
export function renderValues(): string {
  return `${linesOf(schema(), 0).join('\n')}\n`;
}

function linesOf({ properties = {} }: Node, depth: number): string[] {
  const indent = '  '.repeat(depth);
  return Object.entries(properties).flatMap(([name, node]) => {
    const comment = wrap(node.description ?? '', 110 - indent.length).map(line => `${indent}# ${line}`);
    const own =
      node.properties === undefined
        ? stringifyOne({ [name]: node.default }, 0)
            .trimEnd()
            .split('\n')
            .map(line => indent + line)
        : [`${indent}${name}:`, ...linesOf(node, depth + 1)];
    return [...(depth === 0 ? [''] : []), ...comment, ...own];
  });
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Returns the table of all values for the README. */
export function renderValuesTable(): string {
  return table(['Value', 'Default', 'Description'], rowsOf(schema(), ''));
}

function rowsOf({ properties = {} }: Node, prefix: string): Row[] {
  return Object.entries(properties).flatMap(([name, node]) =>
    node.properties === undefined
      ? [[`\`${prefix}${name}\``, `\`${JSON.stringify(node.default)}\``, node.description ?? ''] as const]
      : rowsOf(node, `${prefix}${name}.`),
  );
}
