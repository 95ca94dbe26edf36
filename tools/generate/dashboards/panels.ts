import { CONTROL_ROWS } from './control.ts';
import { EVENT_ROWS } from './events.ts';
import type { PanelRow } from './panel.ts';

/** The rows of the dashboard, starting with the most important row. */
export const PANEL_ROWS: readonly PanelRow[] = [...EVENT_ROWS, ...CONTROL_ROWS];
