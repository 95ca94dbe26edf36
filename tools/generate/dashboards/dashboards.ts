import type { GeneratedFile } from '../generate.ts';
import { select } from '../promql.ts';
import type { Panel, PanelRow } from './panel.ts';
import { PANEL_ROWS } from './panels.ts';

/** The width of the grid in Grafana. */
const GRID = 24;
const [HEIGHT, STAT_HEIGHT] = [8, 5];

const DATA_SOURCE = { type: 'prometheus', uid: '${datasource}' };

/** Matchers for the selected installation. */
const SHOWN = 'namespace="$namespace",job="$job"';

/** Returns a variable with the values of a label. */
function labelVariable(name: string, label: string, of: string): object {
  const query = `label_values(${of}, ${name})`;
  return {
    name,
    label,
    type: 'query',
    datasource: DATA_SOURCE,
    query: { query, refId: name },
    definition: query,
    refresh: 2,
    sort: 1,
  };
}

const VARIABLES: readonly object[] = [
  { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
  labelVariable('namespace', 'Namespace', 'sluice_build_info'),
  labelVariable('job', 'Job', 'sluice_build_info{namespace="$namespace"}'),
];

/** Renders the dashboard for Grafana 10 and newer, for import or for the dashboard sidecar. */
export function renderDashboards(): GeneratedFile[] {
  const dashboard = {
    uid: 'sluice',
    title: 'Sluice',
    description: 'Shows the events between producers and partners: accepted, routed, delivered, and delayed events.',
    tags: ['sluice'],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    templating: { list: VARIABLES },
    panels: placeRows(PANEL_ROWS),
  };
  return [{ path: 'config/dashboards/sluice.json', text: `${JSON.stringify(dashboard, null, 2)}\n` }];
}

function placeRows(rows: readonly PanelRow[]): object[] {
  const placed: object[] = [];
  let y = 0;
  for (const { title, panels } of rows) {
    placed.push({
      id: placed.length + 1,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { h: 1, w: GRID, x: 0, y },
    });
    y++;
    const perLine = panels.length % 3 === 0 ? 3 : Math.min(4, panels.length);
    const w = GRID / perLine;
    for (const [i, panel] of panels.entries()) {
      const h = panel.stat ? STAT_HEIGHT : HEIGHT;
      const place = { h, w, x: (i % perLine) * w, y };
      placed.push({ id: placed.length + 1, ...renderPanel(panel), gridPos: place });
      if (i % perLine === perLine - 1 || i === panels.length - 1) y += h;
    }
  }
  return placed;
}

function renderPanel({ title, description, unit, queries, stat }: Panel): object {
  return {
    type: stat ? 'stat' : 'timeseries',
    title,
    description,
    datasource: DATA_SOURCE,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: stat ? { reduceOptions: { calcs: ['lastNotNull'] } } : { tooltip: { mode: 'multi' } },
    targets: Object.entries(queries).map(([expr, legendFormat], i) => ({
      refId: String.fromCharCode(65 + i),
      datasource: DATA_SOURCE,
      expr: select(expr, SHOWN),
      legendFormat,
    })),
  };
}
