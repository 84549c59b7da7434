/** Announcements for screen readers: one polite live region, in the layout. */

export const ANNOUNCEMENTS_ID = "news";

export function announce(words: string): void {
  const region = document.getElementById(ANNOUNCEMENTS_ID);
  if (region !== null) region.textContent = words;
}
