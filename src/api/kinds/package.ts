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
        'The original name, with 1 to 128 characters. Defaults to metadata.name. You cannot change this field after you set it. To rename the package, use displayName.',
      )
      .optional(),
    displayName: text({ max: 128 })
      .describe(
        'The name that is shown instead of name, with at most 128 characters. You cannot change it after the package is archived.',
      )
      .optional(),
    description: text({ max: 1024 })
      .describe('The description of the package, with at most 1,024 characters.')
      .optional(),
    streams: atomicList(objectName().describe('The metadata.name of a CatalogStream in this namespace.'), { max: 500 })
      .describe(
        'The streams of the package, with at most 500 entries. If you block the package, all of these streams are blocked. Duplicates are ignored. You can add the name of a stream before you create the stream. After the package is archived, you can only remove streams.',
      )
      .optional(),
    archived: z
      .boolean()
      .describe(
        'If true, the package is hidden from lists, and you cannot add streams, blocks or a new name. Existing blocks stay in force. You cannot undo this. Defaults to false.',
      )
      .optional(),
  }),
  immutableOnceSet('name'),
  oneWay('archived'),
  {
    rule: '!oldSelf.?archived.orValue(false) || (has(self.displayName) ? has(oldSelf.displayName) && self.displayName == oldSelf.displayName : !has(oldSelf.displayName))',
    message: 'displayName cannot be changed after the package is archived',
    fieldPath: '.displayName',
  },
  {
    rule: '!oldSelf.?archived.orValue(false) || !has(self.streams) || (has(oldSelf.streams) ? self.streams.all(s, s in oldSelf.streams) : self.streams.size() == 0)',
    message: 'you cannot add streams to an archived package, only remove them',
    fieldPath: '.streams',
  },
).describe('The desired state of the package.');
export type PackageSpec = z.infer<typeof PackageSpec>;

export const PackageStatus = z
  .object({
    ...statusFields,
    streamCount: z
      .int()
      .min(0)
      .max(500)
      .meta({ format: 'int32' })
      .describe('The number of streams in the list, without duplicates.')
      .optional(),
  })
  .describe('The observed state of the package.');
export type PackageStatus = z.infer<typeof PackageStatus>;

export const Package = defineKind({
  kind: 'Package',
  plural: 'packages',
  shortNames: ['pkg'],
  scope: 'Namespaced',
  description:
    'A Package is a named set of streams. You can use one Block to block all of its streams. A package does not grant access, and a stream does not need to be part of a package. The metadata.name is the key of the package. The REST API derives it from the name and only uses lowercase Latin letters, digits and hyphens. If the name does not contain any of these characters, the key consists of p- and a hash.',
  spec: PackageSpec,
  status: PackageStatus,
  columns: [
    {
      name: 'Streams',
      type: 'integer',
      jsonPath: '.status.streamCount',
      description: 'The number of streams in the list.',
    },
    { name: 'Archived', type: 'boolean', jsonPath: '.spec.archived', description: 'Whether the package is archived.' },
  ],
});
export type Package = z.infer<typeof Package.schema>;
