import { expect, test } from 'vitest';
import { KINDS } from '../api/kinds/kinds.ts';
import { WORKSPACE_QUOTA } from './workspace-quota.ts';

const namespaced = Object.values(KINDS).filter(({ scope }) => scope === 'Namespaced');

test('the objects of each kind in a workspace can be limited', () => {
  const quota = Object.fromEntries(namespaced.map(({ plural }) => [`count/${plural}.sluice.dev`, '5']));
  expect(Object.keys(quota)).toHaveLength(6);
  expect(WORKSPACE_QUOTA.parse(JSON.stringify(quota))).toEqual(quota);
});

test('resources of Kubernetes and of other operators can be limited', () => {
  const quota = {
    pods: '10',
    secrets: '50',
    'requests.cpu': '2',
    'limits.memory': '4Gi',
    'services.loadbalancers': '0',
    'count/deployments.apps': '5',
    'count/secrets': '50',
    'hugepages-2Mi': '1Gi',
    'requests.nvidia.com/gpu': '1',
    'gold.storageclass.storage.k8s.io/requests.storage': '10Gi',
  };
  expect(WORKSPACE_QUOTA.parse(JSON.stringify(quota))).toEqual(quota);
});
