import { casesOf } from './case.ts';

const { accepts, refuses, acceptsChange, refusesChange } = casesOf('Block', {
  integration: 'globex',
  target: { kind: 'CatalogStream', name: 'orders' },
});

export const blockCases = [
  accepts('a stream', {}),
  accepts('a package, and no backlog', { target: { kind: 'Package', name: 'sales' }, onUnblock: 'SkipToNow' }),
  refuses(
    'a target of another kind',
    { target: { kind: 'Workspace', name: 'acme' } },
    'supported values: "CatalogStream", "Package"',
  ),
  refuses('a target without a name', { target: { kind: 'Package' } }, 'spec.target.name: Required value'),
  refuses('no target', { target: undefined }, 'spec.target: Required value'),
  acceptsChange('another wish for the backlog', { onUnblock: 'SkipToNow' }, { onUnblock: 'Continue' }),
  refusesChange('another target', {}, { target: { kind: 'CatalogStream', name: 'returns' } }, 'target is immutable'),
  refusesChange('another integration', {}, { integration: 'initech' }, 'integration is immutable'),
];
