import { type Mutant, mutantsOf } from './mutant.ts';

const FACADE = 'src/facade/';
const AUTH = 'src/facade/auth/';
const CONTROL = 'test/system/control/';
const PERMISSIONS = 'src/facade/permissions.test.ts';

/** Mutants of the code that decides who can call: tokens, scopes, roles, and admission policies. */
export const AUTHENTICATION_MUTANTS: readonly Mutant[] = [
  ...mutantsOf(`${AUTH}bearer-token.ts`, [
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
  ...mutantsOf(`${AUTH}token-fault.ts`, [
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
  ...mutantsOf(`${AUTH}query-token.ts`, [
    [
      'a token in a query that was encoded twice is not detected',
      'const DECODINGS = 3;',
      'const DECODINGS = 1;',
      `${AUTH}query-token.test.ts`,
    ],
  ]),
  ...mutantsOf(`${AUTH}issuer-documents.ts`, [
    ['a published private key is trusted', ' && d === undefined', '', `${AUTH}issuer-documents.test.ts`],
    [
      'the metadata of another issuer is accepted',
      "if (metadata['issuer'] !== issuer) {",
      'if (false) {',
      `${AUTH}issuer-documents.test.ts`,
    ],
  ]),
  ...mutantsOf(`${AUTH}issuer-keys.ts`, [
    [
      'each unknown key causes a request',
      '        if (nowMs() - missedMs < limits.cooldownMs) return undefined;\n',
      '',
      `${AUTH}issuer-keys.test.ts`,
    ],
    ['a withdrawn key is trusted forever', ' && ageMs < limits.trustMs', '', `${AUTH}issuer-keys.test.ts`],
    [
      'new keys are refused because an issuer did not respond',
      'if (isRead) missedMs = nowMs();',
      'missedMs = nowMs();',
      `${AUTH}issuer-keys.test.ts`,
    ],
  ]),
  ...mutantsOf(`${AUTH}authentication.ts`, [
    [
      'a call with a refused token continues',
      '    if (outcome instanceof Refusal) throw outcome;\n',
      '    if (outcome instanceof Refusal) return;\n',
      `${AUTH}bad-tokens.test.ts`,
    ],
  ]),
  ...mutantsOf(`${AUTH}client-rules.ts`, [
    [
      'the token of a person is accepted as that of a client',
      ' && SIGN_IN_CLAIMS.every(name => claimOf(claims, name) === undefined)',
      '',
      `${AUTH}client-rules.test.ts`,
    ],
  ]),
  ...mutantsOf(`${AUTH}identity.ts`, [
    ['an unverified address is used', 'isText(email) && verified === true', 'isText(email)', `${AUTH}identity.test.ts`],
  ]),
  ...mutantsOf(`${AUTH}scopes.ts`, [
    ['roles of a person are used as scopes', "idtyp === 'app' ? roles : undefined", 'roles', `${AUTH}scopes.test.ts`],
  ]),
  ...mutantsOf(`${AUTH}ownership.ts`, [
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
  ...mutantsOf(`${FACADE}registration.ts`, [
    [
      'a token does not require a scope',
      'if (requireScopes && !identity.scopes.has(route.scope)) throw refuseScope(route.scope);',
      '',
      PERMISSIONS,
    ],
  ]),
  ...mutantsOf(`${FACADE}contract/reach.ts`, [
    ['every role can change a workspace', '    requireRole(tenant.role, roleOf(route));\n', '', PERMISSIONS],
    [
      'every role can change a received integration',
      '    requireRole(integration.recipient.role, roleOf(route));\n',
      '',
      PERMISSIONS,
    ],
    ['every role can change an account', '    requireRole(account.role, roleOf(route));\n', '', PERMISSIONS],
  ]),
  ...mutantsOf(`${FACADE}contract/route.ts`, [
    [
      'a viewer can make changes',
      "role ?? (scope === 'waas:read' ? 'Viewer' : 'Admin')",
      "role ?? 'Viewer'",
      PERMISSIONS,
    ],
  ]),
  ...mutantsOf(`${FACADE}contract/json-body.ts`, [
    [
      'a body can contain __proto__',
      "  if (key === '__proto__') throw new Refusal('malformed_body', 'A field cannot have the name __proto__.');\n",
      '',
      `${FACADE}attacks.test.ts`,
    ],
  ]),
  ...mutantsOf(`${FACADE}resources/workspaces/members.ts`, [
    [
      'a former Owner can replace the members',
      "    requireRole(role, 'Owner');\n",
      '',
      `${FACADE}resources/workspaces/members.test.ts`,
    ],
  ]),
  ...mutantsOf('config/rbac/admission-policies.yaml', [
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
  ...mutantsOf(`${AUTH}issuer-documents.ts`, [
    [
      'an empty key set replaces the known keys',
      'if (usable.length === 0) throw',
      'if (false) throw',
      `${AUTH}authentication.test.ts`,
    ],
  ]),
  ...mutantsOf(`${AUTH}issuer-keys.ts`, [
    [
      'forged signatures cause any number of requests to the issuer',
      '!isReading() && (isRecent || isResting())',
      'false',
      `${AUTH}issuer-keys.test.ts`,
    ],
    [
      'each look at the same keys makes all tokens be verified again',
      'isDeepStrictEqual(set, held?.set) && held ? held.set : set',
      'set',
      `${AUTH}issuer-keys.test.ts`,
    ],
  ]),
];
