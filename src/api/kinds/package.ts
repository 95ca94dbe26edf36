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
        'Name as it was first given, 1 to 128 characters. Absent: metadata.name. Immutable once set: rename by displayName.',
      )
      .optional(),
    displayName: text({ max: 128 })
      .describe('Name that is shown instead of name. At most 128 characters. Frozen once archived.')
      .optional(),
    description: text({ max: 1024 }).describe('What the package groups. At most 1,024 characters.').optional(),
    streams: atomicList(objectName().describe('metadata.name of a CatalogStream of this namespace.'), { max: 500 })
      .describe(
        'Streams that the package groups, at most 500. Blocking the package blocks them all. Duplicates are ignored; names without a stream count as soon as one appears. Once archived, streams may only be taken out.',
      )
      .optional(),
    archived: z
      .boolean()
      .describe(
        'True: takes no new streams, names or blocks and is left out of lists; its existing blocks hold. One-way. Absent: false.',
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
    message: 'streams can only be taken out once the package is archived',
    fieldPath: '.streams',
  },
).describe('What the producer wants of the package.');
export type PackageSpec = z.infer<typeof PackageSpec>;

export const PackageStatus = z
  .object({
    ...statusFields,
    streamCount: z
      .int()
      .min(0)
      .max(500)
      .meta({ format: 'int32' })
      .describe('Number of different streams listed.')
      .optional(),
  })
  .describe('What the controller has made of it.');
export type PackageStatus = z.infer<typeof PackageStatus>;

export const Package = defineKind({
  kind: 'Package',
  plural: 'packages',
  shortNames: ['pkg'],
  scope: 'Namespaced',
  description:
    'A group of streams, and a lever: a Block of the package keeps all of them from one integration. It opens nothing; streams outside of packages are open as well. metadata.name is its key. REST makes it of the name: a slug of lower-case Latin letters, digits and -; a name without any becomes p- and a hash.',
  spec: PackageSpec,
  status: PackageStatus,
  columns: [
    { name: 'Streams', type: 'integer', jsonPath: '.status.streamCount', description: 'Number of streams listed.' },
    { name: 'Archived', type: 'boolean', jsonPath: '.spec.archived', description: 'Whether it is archived.' },
  ],
});
export type Package = z.infer<typeof Package.schema>;
