import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { atomicList } from '../lists.ts';
import { immutableOnceSet, oneWay, withTransitions } from '../rules.ts';
import { displayName, objectName, text } from '../strings.ts';

export const PackageSpec = withTransitions(
  z.object({
    name: displayName({ min: 1, max: 128 })
      .describe(
        'The original name, between 1 and 128 characters long, on a single line. Defaults to metadata.name. Cannot be changed once set; use displayName to rename the package.',
      )
      .optional(),
    displayName: displayName({ max: 128 })
      .describe(
        'The display name, used in place of name. It can be up to 128 characters long, on a single line. Cannot be changed after archiving.',
      )
      .optional(),
    description: text({ max: 1024 }).describe('The package description, up to 1,024 characters long.').optional(),
    streams: atomicList(objectName().describe('The metadata.name of a CatalogStream within the same namespace.'), {
      max: 500,
    })
      .describe(
        "The streams in this package, at most 500. A Block on the package applies to all of them. They don't need to exist yet. Duplicates are ignored. From an archived package, you can only remove streams.",
      )
      .optional(),
    archived: z
      .boolean()
      .describe(
        'If true, the package is archived. You cannot rename an archived package, add streams to it, or unarchive it. Existing blocks remain in force. By default, the REST API does not list archived packages, and it rejects new blocks on them. A Block applied with kubectl is still enforced. Defaults to false.',
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
      .describe('The number of streams in the list, not counting duplicates.')
      .optional(),
  })
  .describe('The most recently observed status of the package.');
export type PackageStatus = z.infer<typeof PackageStatus>;

export const Package = defineKind({
  kind: 'Package',
  plural: 'packages',
  shortNames: ['pkg'],
  scope: 'Namespaced',
  description:
    "Package is a set of streams that you can pause with a single Block. A package does not grant any access. Streams do not have to belong to a package. The metadata.name is the package's key. The REST API derives it from the name, using lowercase Latin letters, digits, and hyphens. If the name has none of these characters, the key is a hash with the prefix p-.",
  spec: PackageSpec,
  status: PackageStatus,
  columns: [
    {
      name: 'Streams',
      type: 'integer',
      jsonPath: '.status.streamCount',
      description: 'The number of streams in the list.',
    },
    conditionColumn('Resolved', 'StreamsResolved', 'status', 'Indicates whether all streams in the list exist.'),
    {
      name: 'Archived',
      type: 'boolean',
      jsonPath: '.spec.archived',
      description: 'Indicates whether the package has been archived.',
    },
  ],
});
export type Package = z.infer<typeof Package.schema>;
