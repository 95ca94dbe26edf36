import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { defineKind } from '../kind.ts';
import { atomicList } from '../lists.ts';
import { immutableOnceSet, oneWay, withTransitions } from '../rules.ts';
import { objectName, text } from '../strings.ts';

export const PackageSpec = withTransitions(
  z.object({
    name: text({ min: 1, max: 128 })
      .describe(
        'Original name, 1 to 128 characters. Absent: metadata.name. Immutable once set: use displayName to rename.',
      )
      .optional(),
    displayName: text({ max: 128 })
      .describe('Shown instead of name. At most 128 characters. Immutable once archived.')
      .optional(),
    description: text({ max: 1024 }).describe('Description of the package. At most 1,024 characters.').optional(),
    streams: atomicList(objectName().describe('metadata.name of a CatalogStream of this namespace.'), { max: 500 })
      .describe(
        'Streams of the package, at most 500. Blocking the package blocks them all. Duplicates are ignored. A name without a stream counts as soon as the stream exists. Once archived, you can only remove streams.',
      )
      .optional(),
    archived: z
      .boolean()
      .describe(
        'True: the package accepts no new streams, names or blocks and is hidden from lists. Its existing blocks stay in force. One-way. Absent: false.',
      )
      .optional(),
  }),
  immutableOnceSet('name'),
  oneWay('archived'),
  {
    rule: '!oldSelf.?archived.orValue(false) || (has(self.displayName) ? has(oldSelf.displayName) && self.displayName == oldSelf.displayName : !has(oldSelf.displayName))',
    message: 'displayName is frozen once the package is archived',
    fieldPath: '.displayName',
  },
  {
    rule: '!oldSelf.?archived.orValue(false) || !has(self.streams) || (has(oldSelf.streams) ? self.streams.all(s, s in oldSelf.streams) : self.streams.size() == 0)',
    message: 'you can only remove streams from an archived package',
    fieldPath: '.streams',
  },
).describe('Desired state of the package.');
export type PackageSpec = z.infer<typeof PackageSpec>;

export const PackageStatus = z
  .object({
    ...statusFields,
    streamCount: z
      .int()
      .min(0)
      .max(500)
      .meta({ format: 'int32' })
      .describe('Number of streams listed, without duplicates.')
      .optional(),
  })
  .describe('Observed state of the package.');
export type PackageStatus = z.infer<typeof PackageStatus>;

export const Package = defineKind({
  kind: 'Package',
  plural: 'packages',
  shortNames: ['pkg'],
  scope: 'Namespaced',
  description:
    'A named set of streams. One Block of the package covers them all. A package grants no access, and streams need not be in one. metadata.name is its key. REST derives it from the name: a slug of lower-case Latin letters, digits and -. A name without any of these becomes p- and a hash.',
  spec: PackageSpec,
  status: PackageStatus,
  columns: [
    { name: 'Streams', type: 'integer', jsonPath: '.status.streamCount', description: 'Number of streams listed.' },
    { name: 'Archived', type: 'boolean', jsonPath: '.spec.archived', description: 'Whether it is archived.' },
  ],
});
export type Package = z.infer<typeof Package.schema>;
