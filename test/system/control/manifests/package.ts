import { casesOf } from './case.ts';
import { unusableNames, usableNames } from './display-names.ts';

const { accepts, refuses, acceptsChange, refusesChange } = casesOf('Package', {});

const names = (count: number) => Array.from({ length: count }, (_, i) => `a-stream-whose-name-is-rather-long-${i}`);

export const packageCases = [
  accepts('every field', {
    name: 'Sales',
    displayName: 'Sales and returns',
    description: 'All about sales.',
    streams: ['orders', 'returns'],
    archived: false,
  }),
  ...unusableNames.flatMap(([what, name, why]) => [
    refuses(`a name with ${what}`, { name }, why),
    refuses(`a display name with ${what}`, { displayName: name }, why),
  ]),
  ...usableNames.map(name => accepts(`the name ${name}`, { name, displayName: name })),
  accepts('the same stream twice: duplicates are ignored, not refused', { streams: ['orders', 'orders'] }),
  accepts('500 streams', { streams: names(500) }),
  refuses('501 streams', { streams: names(501) }, 'spec.streams: Too many: 501: must have at most 500 items'),
  refuses(
    'a stream that can be no name',
    { streams: ['Orders'] },
    'with a letter or digit at both ends, such as shop-1',
  ),
  refusesChange('changing the name', { name: 'Sales' }, { name: 'Returns' }, 'name is immutable after it is set'),
  acceptsChange('renaming by displayName', { displayName: 'Sales' }, { displayName: 'Returns' }),
  acceptsChange('archiving', { streams: ['orders'] }, { streams: ['orders'], archived: true }),
  refusesChange('un-archiving', { archived: true }, { archived: false }, 'archived cannot be changed back to false'),
  refusesChange(
    'un-archiving by removing the field',
    { archived: true },
    {},
    'archived cannot be changed back to false',
  ),
  refusesChange(
    'renaming an archived one',
    { archived: true, displayName: 'Sales' },
    { archived: true, displayName: 'Returns' },
    'displayName cannot be changed after the package is archived',
  ),
  refusesChange(
    'naming an archived one that had no display name',
    { archived: true },
    { archived: true, displayName: 'Returns' },
    'displayName cannot be changed after the package is archived',
  ),
  refusesChange(
    'taking the display name from an archived one',
    { archived: true, displayName: 'Sales' },
    { archived: true },
    'displayName cannot be changed after the package is archived',
  ),
  acceptsChange('describing an archived one', { archived: true }, { archived: true, description: 'Was: sales.' }),
  acceptsChange(
    'taking one of 500 streams out of an archived one',
    { archived: true, streams: names(500) },
    { archived: true, streams: names(499) },
  ),
  acceptsChange(
    'taking all streams out of an archived one',
    { archived: true, streams: ['orders'] },
    { archived: true },
  ),
  refusesChange(
    'adding a stream to an archived one',
    { archived: true, streams: ['orders'] },
    { archived: true, streams: ['orders', 'returns'] },
    'you cannot add streams to an archived package, only remove them',
  ),
  refusesChange(
    'adding the first stream to an archived one',
    { archived: true },
    { archived: true, streams: ['orders'] },
    'you cannot add streams to an archived package, only remove them',
  ),
];
