import type { Mutant } from './mutants.ts';

const CONTROL = 'test/system/control/';
const AUTH = 'src/facade/auth/';
const FACADE = 'src/facade/';
const PERMISSIONS = `${FACADE}permissions.test.ts`;

type Change = readonly [name: string, from: string, to: string, test: string];

/** The mutants of a file, and the test that detects each of them. */
function securityMutantsOf(file: string, changes: readonly Change[]): Mutant[] {
  return changes.map(([name, from, to, test]) => ({ name, file, from, to, test }));
}

/** Mutants of the code that controls access: tokens, scopes, roles, owners, seals, and consent. */
export const SECURITY_MUTANTS: readonly Mutant[] = [
  ...securityMutantsOf(`${AUTH}bearer-token.ts`, [
    [
      'the first of two tokens is used',
      "if (more.length > 0) return { kind: 'ambiguous' };",
      '',
      `${AUTH}bad-tokens.test.ts`,
    ],
    [
      'a token can have several representations',
      "part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part",
      "part !== ''",
      `${AUTH}bearer-token.test.ts`,
    ],
  ]),
  ...securityMutantsOf(`${AUTH}token-fault.ts`, [
    [
      'a token that is bound to a key is accepted as a bearer token',
      "  if (Object.hasOwn(claims, 'cnf')) return 'bound';\n",
      '',
      `${AUTH}token-fault.test.ts`,
    ],
    [
      'a logout token is accepted as an access token',
      "  if (!isAccessTokenType(header['typ'])) return 'type';\n",
      '',
      `${AUTH}token-fault.test.ts`,
    ],
    [
      'extensions that must be understood are ignored',
      "  if (header['crit'] !== undefined) return 'critical';\n",
      '',
      `${AUTH}token-fault.test.ts`,
    ],
    [
      'a token without an expiry is accepted',
      "typeof value === 'number' && Number.isFinite(value)",
      "typeof value === 'number'",
      `${AUTH}bad-tokens.test.ts`,
    ],
    ['subjects can contain control characters', ' && !/\\p{Cc}/u.test(value)', '', `${AUTH}bad-tokens.test.ts`],
  ]),
  ...securityMutantsOf(`${AUTH}query-token.ts`, [
    [
      'a token in a query that was encoded twice is not detected',
      'const DECODINGS = 3;',
      'const DECODINGS = 1;',
      `${AUTH}query-token.test.ts`,
    ],
  ]),
  ...securityMutantsOf(`${AUTH}issuer-documents.ts`, [
    ['a published private key is trusted', ' && d === undefined', '', `${AUTH}issuer-documents.test.ts`],
    [
      'the metadata of another issuer is accepted',
      "if (metadata['issuer'] !== issuer) {",
      'if (false) {',
      `${AUTH}issuer-documents.test.ts`,
    ],
  ]),
  ...securityMutantsOf(`${AUTH}issuer-keys.ts`, [
    [
      'each unknown key causes a request',
      '        if (nowMs() - missedMs < limits.cooldownMs) return undefined;\n',
      '',
      `${AUTH}issuer-keys.test.ts`,
    ],
    ['a withdrawn key is trusted forever', ' && ageMs < limits.trustMs', '', `${AUTH}issuer-keys.test.ts`],
  ]),
  ...securityMutantsOf(`${AUTH}authentication.ts`, [
    [
      'a call with a refused token continues',
      '    if (outcome instanceof Refusal) throw outcome;\n',
      '    if (outcome instanceof Refusal) return;\n',
      `${AUTH}bad-tokens.test.ts`,
    ],
  ]),
  ...securityMutantsOf(`${AUTH}client-rules.ts`, [
    [
      'the token of a person is accepted as that of a client',
      ' && SIGN_IN_CLAIMS.every(name => claimOf(claims, name) === undefined)',
      '',
      `${AUTH}client-rules.test.ts`,
    ],
  ]),
  ...securityMutantsOf(`${AUTH}identity.ts`, [
    ['an unverified address is used', 'isText(email) && verified === true', 'isText(email)', `${AUTH}identity.test.ts`],
  ]),
  ...securityMutantsOf(`${AUTH}scopes.ts`, [
    ['roles of a person are used as scopes', "idtyp === 'app' ? roles : undefined", 'roles', `${AUTH}scopes.test.ts`],
  ]),
  ...securityMutantsOf(`${AUTH}ownership.ts`, [
    ['a subject of another issuer is an owner', ' || owner.issuer !== issuer', '', `${AUTH}ownership.test.ts`],
    [
      'the owners of any account are owners',
      'account?.metadata.name === workspace.spec.account ? account.spec.owners : undefined',
      'account?.spec.owners',
      `${AUTH}ownership.test.ts`,
    ],
    [
      'a weaker role includes a stronger one',
      'ROLES.indexOf(role) <= ROLES.indexOf(needed)',
      'ROLES.indexOf(role) >= ROLES.indexOf(needed)',
      PERMISSIONS,
    ],
  ]),
  ...securityMutantsOf(`${FACADE}registration.ts`, [
    [
      'a token does not require a scope',
      'if (requireScopes && !identity.scopes.has(route.scope)) throw refuseScope(route.scope);',
      '',
      PERMISSIONS,
    ],
  ]),
  ...securityMutantsOf(`${FACADE}contract/reach.ts`, [
    ['every role can change a workspace', '    requireRole(tenant.role, roleOf(route));\n', '', PERMISSIONS],
    [
      'every role can change a received integration',
      '    requireRole(integration.recipient.role, roleOf(route));\n',
      '',
      PERMISSIONS,
    ],
    ['every role can change an account', '    requireRole(account.role, roleOf(route));\n', '', PERMISSIONS],
  ]),
  ...securityMutantsOf(`${FACADE}contract/route.ts`, [
    [
      'a viewer can make changes',
      "role ?? (scope === 'waas:read' ? 'Viewer' : 'Admin')",
      "role ?? 'Viewer'",
      PERMISSIONS,
    ],
  ]),
  ...securityMutantsOf(`${FACADE}contract/json-body.ts`, [
    [
      'a body can contain __proto__',
      "  if (key === '__proto__') throw new Refusal('malformed_body', 'A field cannot have the name __proto__.');\n",
      '',
      `${FACADE}attacks.test.ts`,
    ],
  ]),
  ...securityMutantsOf('src/core/delivery/seal.ts', [
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
  ...securityMutantsOf(`${FACADE}resources/subscriptions/signing-secrets.ts`, [
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
  ...securityMutantsOf('src/core/delivery/header-seal.ts', [
    [
      'a header value can be decrypted for any subscription',
      'return `${subscription}/header',
      'return `${subscription.length}/header',
      'src/core/delivery/header-seal.test.ts',
    ],
  ]),
  ...securityMutantsOf('src/dataplane/dispatcher/consent.ts', [
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
  ...securityMutantsOf('src/dataplane/dispatcher/deliver.ts', [
    [
      'an event is sent although its gate may have closed',
      '  if (deps.askConsent !== undefined && isLate()) return RELEASED;\n',
      '',
      'src/dataplane/dispatcher/deliver.test.ts',
    ],
  ]),
  ...securityMutantsOf(`${FACADE}resources/workspaces/members.ts`, [
    [
      'a former Owner can replace the members',
      "    requireRole(role, 'Owner');\n",
      '',
      `${FACADE}resources/workspaces/members.test.ts`,
    ],
  ]),
  ...securityMutantsOf(`${FACADE}resources/workspaces/ingress-keys.ts`, [
    [
      'a repeated call returns another ingress key after a rotation of the root key',
      "(keys.key(seed?.split('.')[0]) ?? keys.first())",
      'keys.first()',
      `${FACADE}resources/workspaces/ingress-keys.test.ts`,
    ],
  ]),
  ...securityMutantsOf(`${FACADE}resources/invitations/accepting-account.ts`, [
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
  ...securityMutantsOf(`${FACADE}resources/invitations/invitation-acceptance.ts`, [
    [
      'a Viewer can repeat an acceptance',
      "  requireRole(role, 'Admin');\n",
      '',
      `${FACADE}resources/invitations/invitations.test.ts`,
    ],
  ]),
  ...securityMutantsOf(`${FACADE}resources/subscriptions/resealing.ts`, [
    [
      'a facade that receives a root key later reverts header values',
      'if (all.findIndex(({ id }) => id === by) > all.indexOf(keys.first())) return header;',
      '',
      `${FACADE}resources/subscriptions/resealing.test.ts`,
    ],
  ]),
  ...securityMutantsOf('src/idempotency/keyed-calls.ts', [
    [
      'a stored response can be decrypted for another owner',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the text of the source.
      '`idempotency/${owner}/${name}`',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the text of the source.
      '`idempotency/${name}`',
      'src/idempotency/keyed-calls.redis.test.ts',
    ],
  ]),
  ...securityMutantsOf('src/tls/served-certificate.ts', [
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
    [
      'a process starts with a certificate that OpenSSL does not accept',
      '    return (error as Error).message;',
      '    return undefined;',
      'src/config/tls-environment.test.ts',
    ],
  ]),
  ...securityMutantsOf('config/rbac/admission-policies.yaml', [
    [
      'the controller can change specs',
      'expression: oldObject != null && object.spec == oldObject.spec\n',
      'expression: "true"\n',
      `${CONTROL}admission-controller.kube.test.ts`,
    ],
    [
      'the controller can delete an Activation that is in use',
      'expression: oldObject.spec.?revoked.orValue(false) == true\n',
      'expression: "true"\n',
      `${CONTROL}admission-controller.kube.test.ts`,
    ],
    [
      'the controller can write quotas in any namespace',
      'namespaceObject.metadata.name\n      message: the controller can only write quotas',
      "'' || true\n      message: the controller can only write quotas",
      `${CONTROL}admission-controller.kube.test.ts`,
    ],
    [
      'the facade can create workspaces with owners',
      'expression: oldObject != null || !has(object.spec.owners)\n',
      'expression: "true"\n',
      `${CONTROL}admission-facade.kube.test.ts`,
    ],
    [
      'the facade can give a workspace access to a producer',
      'expression: "!has(object.spec.workspace)"\n',
      'expression: "true"\n',
      `${CONTROL}admission-facade.kube.test.ts`,
    ],
  ]),
];
