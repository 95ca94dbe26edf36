import packageJson from '../../package.json' with { type: 'json' };

/** Version of Sluice, as in the package and in `user-agent`. */
export const VERSION: string = packageJson.version;
