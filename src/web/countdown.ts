import { type Html, html } from './html.ts'
import { formatTime } from './person/date.ts'

const SOON_MS = 5 * 60_000

/** True when the end is near enough to warn (design: last 5 minutes). */
export function endsSoon(endsAt: number, now: number): boolean {
  return endsAt - now < SOON_MS
}

/**
 * When the session ends. The end time is the message, true on an old page; the bar drains by SVG, without a script. A script
 * may renew it: the ends are in `data-ends-at` and `data-started-at` (milliseconds).
 */
export function countdown(options: {
  readonly startedAt: number
  readonly endsAt: number
  readonly now: number
}): Html {
  const { startedAt, endsAt, now } = options
  const left = Math.max(0, endsAt - now)
  const whole = Math.max(1, endsAt - startedAt)
  const rest = Math.round(Math.min(100, (left / whole) * 100) * 10) / 10
  return html`<div class="countdown push${endsSoon(endsAt, now) && ' countdown--soon'}" role="group" aria-label="Session" data-started-at="${startedAt}" data-ends-at="${endsAt}"><span class="countdown__text"><span>Session ends <time datetime="${new Date(endsAt).toISOString()}">${formatTime(endsAt)}</time></span><span class="countdown__left">${leftText(left)}</span></span><svg class="countdown__bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="4"/><rect class="rest" width="${rest}" height="4">${
    left > 0 &&
    html`<animate attributeName="width" from="${rest}" to="0" dur="${Math.ceil(left / 1000)}s" fill="freeze"/>`
  }</rect></svg></div>`
}

/** `29 min left`, `2 h 5 min left`, `Less than a minute left`, `Ended`. */
export function leftText(ms: number): string {
  if (ms <= 0) return 'Ended'
  const minutes = Math.floor(ms / 60_000)
  if (minutes === 0) return 'Less than a minute left'
  if (minutes < 60) return `${minutes} min left`
  const rest = minutes % 60
  return rest === 0 ? `${Math.floor(minutes / 60)} h left` : `${Math.floor(minutes / 60)} h ${rest} min left`
}
