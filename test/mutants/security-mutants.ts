import { type Mutant, mutantsOf } from './mutant.ts';

const FACADE = 'src/facade/';

/** Mutants of the code that protects secrets and endpoints: seals, keys, owners, and consent. */
export const SECURITY_MUTANTS: readonly Mutant[] = [
  ...mutantsOf('src/core/delivery/header-seal.ts', [
    ['a sealed value can be decrypted for another header', '/${header.toLowerCase()}`', '`'],
    ['a sealed value can be decrypted for a later subscription with the same name', 'header/${life}/', 'header/'],
    ['a sealed value can be decrypted for another host', '/${origin}/', '/'],
    ['a value for a new subscription can be decrypted for any later one', ' <= NEW_WITHIN_MS', ' >= 0'],
  ]),
  ...mutantsOf('src/core/delivery/key-ring.ts', [
    [
      'a new key is used before it is the first key',
      'stateOf(found, state.keys.slice(0, state.keys.indexOf(state.first) + 1))',
      'stateOf(found, [])',
    ],
    ['the newest root key is used for object names', 'oldest = () => state.all[0]', 'oldest = () => state.all.at(-1)'],
    ['a secret without an id is derived from the first root key', '(id = oldest().id)', '(id = state.first.id)'],
    ['a retired root key still decrypts', 'files.isRetired ? files.all.slice(1) : files.all', 'files.all'],
    ['retiring a root key is ignored', ' && isRetired === before.isRetired', ''],
  ]),
  ...mutantsOf('src/controller/root-keys.ts', [
    ['a root key is used although a replica does not have it', 'reports.values()].every(', 'reports.values()].some('],
    [
      'a root key is used before it is published',
      '    await control.publishRootKey(deps.fence(), next.fingerprint);\n    keys.follow(next.fingerprint);',
      '    keys.follow(next.fingerprint);\n    await control.publishRootKey(deps.fence(), next.fingerprint);',
    ],
    ['endpoints stay encrypted with the old root key', '    deps.enqueueAll();\n', ''],
  ]),
  ...mutantsOf('src/facade/resources/subscriptions/subscription-request.ts', [
    ['a stored value is kept for another host', '} else if (moves) {', '} else if (false) {'],
  ]),
  ...mutantsOf('src/core/delivery/signing-secret.ts', [
    ['a recreated subscription has its old secret', '.${salt}.${version}', '.${version}'],
    ['a secret without a salt is used', 'if (!salt) throw', "if (salt === '') throw"],
    [
      'a rotation of the root key changes every secret',
      '? [first, key] : [key, previousKey]',
      '? [first, key] : [first, key]',
    ],
    [
      'a secret is derived without its root key',
      "missing && (missing.id ?? 'oldest')",
      'missing?.id',
      'src/core/routing/endpoint-secrets.test.ts',
    ],
    ['the previous secret changes with the next one', 'each === version ? key : previousKey', 'key'],
  ]),
  ...mutantsOf('src/controller/kinds/subscription/salt.ts', [
    ['two leaders can write different salts', 'metadata: { uid, resourceVersion }', 'metadata: { uid }'],
  ]),
  ...mutantsOf('src/core/delivery/seal.ts', [
    [
      'a sealed value can be decrypted in another context',
      '  decipher.setAAD(aadBytes);\n',
      '',
      'src/core/delivery/seal.test.ts',
    ],
    [
      'a sealed value can have several representations',
      " || body.toString('base64url') !== encoded",
      '',
      'src/core/delivery/seal.test.ts',
    ],
  ]),
  ...mutantsOf(`${FACADE}resources/subscriptions/signing-secrets.ts`, [
    [
      'a signing secret is returned before it is in force',
      'if (recorded !== wanted && recorded !== wanted - 1) {',
      'if (recorded > wanted) {',
      `${FACADE}resources/subscriptions/signing-secrets.test.ts`,
    ],
    [
      'the facade selects the root key of a signing secret',
      'const secret = secretOf(recorded, key);',
      'const secret = secretOf(recorded, undefined);',
      `${FACADE}resources/subscriptions/signing-secrets.test.ts`,
    ],
    [
      'a replaced secret is returned as valid',
      'const [, previous] = recorded === wanted ?',
      'const [, previous] = recorded > 0 ?',
      `${FACADE}resources/subscriptions/signing-secrets.test.ts`,
    ],
  ]),
  ...mutantsOf('src/core/delivery/header-seal.ts', [
    [
      'a header value can be decrypted for any subscription',
      'return `${subscription}/header',
      'return `${subscription.length}/header',
      'src/core/delivery/header-seal.test.ts',
    ],
  ]),
  ...mutantsOf('src/dataplane/dispatcher/consent.ts', [
    [
      'an endpoint agrees to any sender',
      "allowed === '*' || allowed?.toLowerCase() === origin.toLowerCase()",
      'allowed !== undefined',
      'src/dataplane/dispatcher/consent.test.ts',
    ],
    [
      'an endpoint agrees with any status',
      "result.outcome === 'delivered' && agrees",
      'agrees',
      'src/dataplane/dispatcher/consent.test.ts',
    ],
    [
      'each event sends another consent request',
      'found !== undefined && monotonicMs() < found.untilMs',
      'found !== undefined && false',
      'src/dataplane/dispatcher/consent.test.ts',
    ],
  ]),
  ...mutantsOf('src/dataplane/dispatcher/deliver.ts', [
    [
      'an event is sent although its gate may have closed',
      '  if (deps.askConsent !== undefined && isLate()) return RELEASED;\n',
      '',
      'src/dataplane/dispatcher/deliver.test.ts',
    ],
  ]),
  ...mutantsOf(`${FACADE}resources/workspaces/ingress-keys.ts`, [
    [
      'a repeated call returns another ingress key after a rotation of the root key',
      "(keys.key(seed?.split('.')[0]) ?? keys.first())",
      'keys.first()',
      `${FACADE}resources/workspaces/ingress-keys.test.ts`,
    ],
  ]),
  ...mutantsOf(`${FACADE}resources/invitations/accepting-account.ts`, [
    [
      'a Viewer can accept an invitation for an account',
      "      requireRole(role, 'Admin');\n",
      '',
      `${FACADE}resources/invitations/accepting-account.test.ts`,
    ],
    [
      'a member of a Free account cannot get one of their own',
      ' && !isShared(account, identity)',
      '',
      `${FACADE}resources/invitations/accepting-account.test.ts`,
    ],
  ]),
  ...mutantsOf(`${FACADE}resources/invitations/invitation-acceptance.ts`, [
    [
      'a Viewer can repeat an acceptance',
      "  requireRole(role, 'Admin');\n",
      '',
      `${FACADE}resources/invitations/invitations.test.ts`,
    ],
  ]),
  ...mutantsOf(`${FACADE}resources/subscriptions/resealing.ts`, [
    [
      'a facade that receives a root key later reverts header values',
      'if (all.findIndex(({ id }) => id === by) > all.indexOf(keys.first())) return header;',
      '',
      `${FACADE}resources/subscriptions/resealing.test.ts`,
    ],
  ]),
  ...mutantsOf('src/idempotency/keyed-calls.ts', [
    [
      'a stored response can be decrypted for another owner',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the text of the source.
      '`idempotency/${owner}/${name}`',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the text of the source.
      '`idempotency/${name}`',
      'src/idempotency/keyed-calls.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/tls/served-certificate.ts', [
    [
      'a certificate counts as served although the server does not accept it',
      '        onChange(found);\n        current = found;',
      '        current = found;\n        onChange(found);',
      'src/tls/served-certificate.test.ts',
    ],
    [
      'the expiry of the first certificate is reported after it was replaced',
      '        current = found;\n',
      '',
      'src/tls/served-certificate.test.ts',
    ],
  ]),
  ...mutantsOf('src/tls/pem-files.ts', [
    [
      'a process starts with a certificate that OpenSSL does not accept',
      '    return (error as Error).message;',
      '    return undefined;',
      'src/config/tls-environment.test.ts',
    ],
  ]),
];
