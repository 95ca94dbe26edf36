import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { renderInstallFile } from './kustomize/install-file.ts';

/**
 * Writes `dist/install.yaml` and `dist/install-evaluation.yaml`, which can be applied using `kubectl`.
 *
 *     bin/node tools/generate/install-files.ts <registry>
 */

const DIST = join(import.meta.dirname, '..', '..', 'dist');

const FILES = { 'install.yaml': { evaluation: false }, 'install-evaluation.yaml': { evaluation: true } };

const [registry = ''] = process.argv.slice(2);
try {
  for (const [name, options] of Object.entries(FILES)) {
    const text = renderInstallFile(registry, options);
    mkdirSync(DIST, { recursive: true });
    writeFileSync(join(DIST, name), text);
    process.stdout.write(`wrote dist/${name}\n`);
  }
} catch (error) {
  if (!(error instanceof RangeError)) throw error;
  process.stderr.write(`make install-files REGISTRY=registry.example.com: ${error.message}\n`);
  process.exitCode = 1;
}
