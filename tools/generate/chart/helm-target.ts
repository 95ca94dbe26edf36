import { STOP_SECONDS } from '../manifests/plain-target.ts';
import type { Target } from '../manifests/target.ts';
import { block, expression, fieldsOf, itemsOf, tree } from './template.ts';

const SECRETS = { redis: 'sluice.redisSecret', 'root-key': 'sluice.rootKeySecret', smtp: 'sluice.smtpSecret' } as const;

const valueAt = (path: string) => `$.Values.${path}`;
const helper = (name: string) => expression(`include "${name}" $`);
const checksumOf = (file: string) => expression(`include (print $.Template.BasePath "/${file}") $ | sha256sum`);

/** The rendering for the chart. `$` is used everywhere because `.` has a different meaning inside `range`. */
export const HELM_TARGET: Target = {
  namespace: expression('$.Release.Namespace'),
  prefix: helper('sluice.prefix'),
  instance: expression('$.Release.Name'),
  accountOf: role => expression(`include "sluice.account" (list $ "${role}")`),
  image: expression('include "sluice.image" $ | quote'),
  redisImage: expression('include "sluice.redisImage" $ | quote'),
  componentOf: role => expression(`include "sluice.component" (list $ "${role}")`),
  secretOf: subject => helper(SECRETS[subject]),
  // JSON writes large numbers in full, and quotes strings.
  value: (path, { as } = {}) => {
    if (as === 'joined') return expression(`join "," ${valueAt(path)} | quote`);
    if (as === 'pairs') return expression(`include "sluice.pairs" ${valueAt(path)} | quote`);
    return as === 'text' ? expression(`include "sluice.text" ${valueAt(path)}`) : expression(`toJson ${valueAt(path)}`);
  },
  choose: (path, yes, no) => expression(`ternary "${yes}" "${no}" (not (empty ${valueAt(path)}))`),
  tree: path => tree(valueAt(path)),
  when: (path, fields) => block(`if ${valueAt(path)}`, fields),
  unlessAutoscaled: (workload, fields) =>
    block(
      `if not (or ${valueAt(`${workload}.autoscaled`)} (kindIs "invalid" ${valueAt(`${workload}.replicas`)}))`,
      fields,
    ),
  whenIs: (path, is, fields) => block(`if eq ${valueAt(path)} "${is}"`, fields),
  itemsWhen: (path, items) => [block(`if ${valueAt(path)}`, items)],
  each: (path, item) => [block(`range ${valueAt(path)}`, [item(expression('toJson .'))])],
  eachPort: (kind, item) => [
    block(`range include "sluice.ports" (list $ "${kind}") | fromJsonArray`, [item(expression('toJson .'))]),
  ],
  spread: path => [itemsOf(valueAt(path))],
  merge: path => fieldsOf(valueAt(path)),
  endpointRules: [itemsOf('include "sluice.endpointRules" $ | fromYamlArray')],
  graceSeconds: expression(`add ${STOP_SECONDS} (int64 $.Values.shutdownDelaySeconds)`),
  checksums: {
    'checksum/config': checksumOf('config.yaml'),
    'checksum/secrets': checksumOf('secrets.yaml'),
    ...block('if $.Values.trust.configMap', { 'checksum/trust': helper('sluice.trustChecksum') }),
  },
  smtpOptional: expression('not (or $.Values.smtp.url $.Values.smtp.existingSecret)'),
};
