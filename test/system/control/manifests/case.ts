import { API_VERSION } from '../../../../src/api/group-version.ts';
import { KINDS, type KindName } from '../../../../src/api/kinds/kinds.ts';

/** A manifest and the expected response of the API server. */
export interface ManifestCase {
  kind: KindName;
  /** A description for the test title. */
  title: string;
  /** The value of metadata.name. By default, the test generates a name. */
  name?: string;
  /** The earlier spec of the object for a test case about a change. */
  before?: object;
  /** The earlier status of the object. */
  status?: object;
  spec: object;
  /** Text that the refusal must contain. Undefined if the manifest is accepted. */
  refusal?: string;
  /**
   * Whether only the API server knows this rule, and not the zod schema. Used for rules about changes, names, and
   * unknown fields.
   */
  serverOnly: boolean;
}

type Extra = Partial<Pick<ManifestCase, 'name' | 'serverOnly'>>;

/**
 * Builders for the test cases of a kind. `base` contains the required fields, which a test case can extend or replace.
 */
export function casesOf(kind: KindName, base: object) {
  const build = (title: string, spec: object, rest: Partial<ManifestCase>): ManifestCase => ({
    kind,
    title,
    spec: { ...base, ...spec },
    serverOnly: false,
    ...rest,
  });
  const accepts = (title: string, spec: object, extra: Extra = {}) => build(title, spec, extra);
  const refuses = (title: string, spec: object, refusal: string, extra: Extra = {}) =>
    build(title, spec, { refusal, ...extra });
  const acceptsChange = (title: string, before: object, spec: object) =>
    build(title, spec, { before: { ...base, ...before }, serverOnly: true });
  const refusesChange = (title: string, before: object, spec: object, refusal: string, status?: object) =>
    build(title, spec, { before: { ...base, ...before }, refusal, serverOnly: true, ...(status && { status }) });
  /** The cases of a kind whose objects specify the installation that manages them. */
  const instanceCases = [
    refuses(
      'an instance that is not a DNS label',
      { instance: 'Blue' },
      'lowercase letters, digits and hyphens, such as blue',
    ),
    refuses('an instance of 33 characters', { instance: 'b'.repeat(33) }, 'spec.instance'),
    acceptsChange('the same instance', { instance: 'b'.repeat(32) }, { instance: 'b'.repeat(32) }),
    refusesChange('another instance', { instance: 'blue' }, { instance: 'green' }, 'instance is immutable'),
    refusesChange('an instance later', {}, { instance: 'blue' }, 'instance is immutable'),
    refusesChange('removing the instance', { instance: 'blue' }, { instance: undefined }, 'instance is immutable'),
  ];
  return { accepts, refuses, acceptsChange, refusesChange, instanceCases };
}

/** Returns the manifest as JSON, which is also YAML. */
export function manifestOf(
  found: Pick<ManifestCase, 'kind'>,
  part: { name: string; namespace: string; labels?: object; spec: object; status?: object },
): string {
  const namespace = KINDS[found.kind].scope === 'Namespaced' ? { namespace: part.namespace } : {};
  return JSON.stringify({
    apiVersion: API_VERSION,
    kind: found.kind,
    metadata: { name: part.name, ...namespace, ...(part.labels && { labels: part.labels }) },
    spec: part.spec,
    ...(part.status && { status: part.status }),
  });
}
