import { CONTROL_ROWS } from './control.ts';
import { EVENT_ROWS } from './events.ts';
import type { PanelRow } from './panel.ts';

/** The dashboard, from top to bottom: what everybody looks at first is first. */
export const PANEL_ROWS: readonly PanelRow[] = [...EVENT_ROWS, ...CONTROL_ROWS];
