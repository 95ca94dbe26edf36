import packageJson from '../../package.json' with { type: 'json' };

/** Version of Sluice. Also used in `user-agent`. */
export const VERSION: string = packageJson.version;
