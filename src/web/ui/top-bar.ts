import { MINUTE_MS } from '../../core/index.ts'
import type { Brand } from './brand.ts'
import { renderIcon, renderLogo } from './components.ts'
import { renderMoment } from './date.ts'
import { type Html, html } from './html.ts'

export interface BarLink {
  readonly href: string
  readonly text: string
  /** What waits there, beside the text. */
  readonly count?: number | undefined
  readonly current?: boolean
  readonly newTab?: boolean
}

/** The top bar of a page (design: `topbar`). */
export type Bar =
  /** Pages of the auth server: links, and after login the name and "Sign out". */
  | {
      readonly kind: 'portal'
      readonly links?: readonly BarLink[]
      /** In a menu of their own, at the end. */
      readonly developerLinks?: readonly BarLink[]
      readonly who?: string
    }
  /** Pages of an authorization request: steps instead of links. */
  | {
      readonly kind: 'flow'
      /** The target of the logo; the default is the portal. */
      readonly home?: string
      readonly steps?: readonly string[]
      readonly current?: number
      readonly width?: 'mid' | 'flow'
    }
  /** Pages of the demo app: links and, with a session, countdown, name and "End session". */
  | {
      readonly kind: 'app'
      readonly links?: readonly BarLink[]
      readonly countdown?: Html
      readonly who?: string
      /** The path that ends the session. */
      readonly logout?: string
    }

export function renderTopBar(
  bar: Bar,
  { brand, sampleData }: { readonly brand: Brand; readonly sampleData: boolean },
): Html {
  const env = sampleData && html`<span class="badge env">Sample data</span>`
  switch (bar.kind) {
    case 'portal':
      return renderHeader('wrap', html`${renderLogo('/portal', brand)}${env}${renderMenu(bar)}`)
    case 'flow':
      return renderHeader(
        bar.width === 'mid' ? 'wrap wrap--mid' : 'wrap wrap--flow',
        html`${renderLogo(bar.home ?? '/portal', brand)}${renderSteps(bar.steps ?? [], bar.current)}`,
      )
    case 'app':
      return renderHeader(
        'wrap',
        html`${renderLogo('/', { name: 'Demo app' })}${env}${renderLinks(bar.links ?? [])}${bar.countdown}${renderEndSession(bar)}`,
      )
  }
}

function renderHeader(wrap: string, content: Html): Html {
  return html`<header class="topbar"><div class="${wrap}">${content}</div></header>`
}

/** One line of links; a menu behind a button where they do not fit. */
function renderMenu({
  links = [],
  developerLinks = [],
  who,
}: Bar & { readonly kind: 'portal' }): Html | undefined {
  if (links.length === 0 && who === undefined) return undefined
  return html`<button class="btn btn--text topbar__open" popovertarget="menu">Menu</button><div class="topbar__menu" id="menu" popover>${renderLinks(links, renderDeveloperMenu(developerLinks))}${renderSignOut(who)}</div>`
}

function renderLinks(all: readonly BarLink[], more?: Html): Html | undefined {
  if (all.length === 0) return undefined
  return html`<nav class="topbar__nav" aria-label="Main"><ul class="nav">${all.map(renderLink)}${more}</ul></nav>`
}

function renderLink({ href, text, count = 0, current, newTab }: BarLink): Html {
  return html`<li><a href="${href}"${current === true && html` aria-current="page"`}${newTab === true && html` target="_blank"`}>${text}${count > 0 && html` <span class="badge badge--accent">${count}<span class="sr"> open</span></span>`}</a></li>`
}

/** Behind a button, or a group with a heading where all links are in a menu. */
function renderDeveloperMenu(links: readonly BarLink[]): Html | undefined {
  if (links.length === 0) return undefined
  const isHere = links.some(({ current }) => current)
  return html`<li class="devmenu"><button class="devmenu__open" popovertarget="developer"${isHere && html` aria-current="true"`}>Developer</button><div class="devmenu__list" id="developer" popover><p class="devmenu__head">Developer</p><ul>${links.map(renderLink)}</ul></div></li>`
}

function renderSignOut(who: string | undefined): Html | undefined {
  if (who === undefined) return undefined
  return html`<form class="who" method="post" action="/logout"><span class="who__name">${who}</span><button class="btn btn--text">Sign out</button></form>`
}

function renderEndSession({ who, logout }: Bar & { readonly kind: 'app' }): Html | undefined {
  if (logout === undefined) return undefined
  return html`<form class="who who--next" method="post" action="${logout}"><span class="who__name">${who}</span><button class="btn btn--text">End session</button></form>`
}

function renderSteps(names: readonly string[], current = 0): Html | undefined {
  if (names.length === 0) return undefined
  return html`<ol class="steps" aria-label="Steps">${names.map((name, index) => renderStep(name, index, current))}</ol>`
}

function renderStep(name: string, index: number, current: number): Html {
  if (index < current)
    return html`<li>${renderIcon('tick')}<span>${name}</span><span class="sr">, done</span></li>`
  if (index === current)
    return html`<li aria-current="step"><span class="steps__no">${index + 1}</span><span>${name}</span></li>`
  return html`<li><span class="steps__no steps__no--next">${index + 1}</span><span>${name}</span></li>`
}

const SOON_MS = 5 * MINUTE_MS

/** How long before its end a session warns: five minutes, or a third of a short idle time. */
export function computeWarningMs(idleSeconds: number): number {
  return Math.min(SOON_MS, (idleSeconds * 1000) / 3)
}

/**
 * Shows the end of the session as a time, which stays true on an old page, and a bar that shrinks by SVG animation. A script
 * may update it: the times are in `data-started-at` and `data-ends-at` (milliseconds).
 */
export function renderCountdown(options: {
  readonly startedAt: number
  readonly endsAt: number
  readonly now: number
  /** How long before the end it is marked. */
  readonly warningMs?: number
}): Html {
  const { startedAt, endsAt, now, warningMs = SOON_MS } = options
  const left = Math.max(0, endsAt - now)
  const whole = Math.max(1, endsAt - startedAt)
  const rest = Math.round(Math.min(100, (left / whole) * 100) * 10) / 10
  return html`<div class="countdown push${left < warningMs && ' countdown--soon'}" role="group" aria-label="Session" data-started-at="${startedAt}" data-ends-at="${endsAt}"><span class="countdown__text"><span>Session ends ${renderMoment(endsAt, { form: 'clock' })}</span><span class="countdown__left">${formatTimeLeft(left)}</span></span><svg class="countdown__bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="4"/><rect class="rest" width="${rest}" height="4">${
    left > 0 &&
    html`<animate attributeName="width" from="${rest}" to="0" dur="${Math.ceil(left / 1000)}s" fill="freeze"/>`
  }</rect></svg></div>`
}

/** `29 min left`, `2 h 5 min left`, `Less than a minute left`, `Ended`. */
export function formatTimeLeft(ms: number): string {
  if (ms <= 0) return 'Ended'
  const minutes = Math.floor(ms / MINUTE_MS)
  if (minutes === 0) return 'Less than a minute left'
  if (minutes < 60) return `${minutes} min left`
  const rest = minutes % 60
  return rest === 0 ? `${Math.floor(minutes / 60)} h left` : `${Math.floor(minutes / 60)} h ${rest} min left`
}
