const id = (prefix: string) => new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{20}$`);

/** Public ids by their prefix (part 2 of the specification), and those of our own resources. */
export const ID_FORMS = {
  ten: id('ten'),
  cat: id('cat'),
  pkg: id('pkg'),
  int: id('int'),
  act: id('act'),
  sub: id('sub'),
  acc: id('acc'),
} as const;

/** The fields that contain a public id. */
const ID_FIELDS: Readonly<Record<string, RegExp>> = {
  producerTenantPublicId: ID_FORMS.ten,
  receivingTenantPublicId: ID_FORMS.ten,
  workspacePublicId: ID_FORMS.ten,
  catalogEntryPublicId: ID_FORMS.cat,
  packagePublicId: ID_FORMS.pkg,
  integrationPublicId: ID_FORMS.int,
  activationPublicId: ID_FORMS.act,
  subscriptionPublicId: ID_FORMS.sub,
  accountPublicId: ID_FORMS.acc,
};

/** Returns the differences between a response and the conventions of part 2, at any depth. Empty if there are none. */
export function unconventional(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item, n) => unconventional(item, `${at}/${n}`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([field, held]) => {
    const where = `${at}/${field}`;
    const shape = ID_FIELDS[field] ?? (field.endsWith('PublicId') ? /^[a-z]{3}_/ : undefined);
    return [
      ...(/^[a-z][A-Za-z0-9]*$/.test(field) ? [] : [`${where} is not camelCase`]),
      ...(shape === undefined || held === null || shape.test(String(held)) ? [] : [`${where} is ${String(held)}`]),
      // Names of HTTP headers are values here, and not fields.
      ...(field === 'headers' && !Array.isArray(held) ? [] : unconventional(held, where)),
    ];
  });
}
