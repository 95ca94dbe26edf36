/** The icon of Sluice (SVG): an open gate above water. */
export const ICON = [
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0f766e"/>',
  '<path d="M11 6h10v9H11z" fill="#fff"/>',
  '<g fill="none" stroke="#fff" stroke-width="2.5" stroke-linecap="round">',
  '<path d="M7 6v12M25 6v12"/>',
  '<path d="M4.5 21q3.8-3.5 7.7 0t7.7 0 7.6 0M8.5 26.5q2.5-2.5 5 0t5 0 5 0"/>',
  '</g></svg>',
].join('');
