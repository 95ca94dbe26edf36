import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { NODE_NAME } from './components.ts';

/** The location of the volume folders in the namespaces of the node. */
const FOLDER = '/var/lib/volumes';

const NAMES = Array.from({ length: 10 }, (_, index) => `volume-${index + 1}`);

/** The default StorageClass. There is no provisioner, so claims are bound to existing volumes. */
const STORAGE_CLASS = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'local', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: 'kubernetes.io/no-provisioner',
  volumeBindingMode: 'WaitForFirstConsumer',
};

function volume(name: string) {
  const isNode = { key: 'kubernetes.io/hostname', operator: 'In', values: [NODE_NAME] };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      capacity: { storage: '10Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: STORAGE_CLASS.metadata.name,
      persistentVolumeReclaimPolicy: 'Retain',
      local: { path: join(FOLDER, name) },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [isNode] }] } },
    },
  };
}

/** Creates the folders of the volumes. @param root the folder containing the node's `/var/lib` */
export async function createVolumeFolders(root: string): Promise<void> {
  await Promise.all(NAMES.map(name => mkdir(join(root, FOLDER, name), { recursive: true })));
}

/**
 * Ten local volumes of the node, which are sufficient for ten claims. The kubelet assigns them to the `fsGroup` of a
 * Pod.
 */
export const VOLUMES = { apiVersion: 'v1', kind: 'List', items: [STORAGE_CLASS, ...NAMES.map(volume)] };
