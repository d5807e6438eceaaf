import { type Html, html } from './html.ts'
import { icon, logo } from './icons.ts'

export interface BarLink {
  readonly href: string
  readonly text: string
  readonly current?: boolean
}

/** The top bar of a page (design: `topbar`). */
export type Bar =
  /** Pages of the auth server: links, name, Sign out. Nobody signed in: neither name nor button. */
  | { readonly kind: 'portal'; readonly links?: readonly BarLink[]; readonly who?: string }
  /** Pages of an authorization: steps instead of links. */
  | {
      readonly kind: 'flow'
      readonly steps?: readonly string[]
      readonly current?: number
      readonly width?: 'mid' | 'flow'
    }
  /** Pages of the demo app: countdown, name, End session. */
  | { readonly kind: 'app'; readonly countdown?: Html; readonly who?: string }

export function renderTopBar(bar: Bar, sampleData: boolean): Html {
  const env = sampleData && html`<span class="badge env">Sample data</span>`
  switch (bar.kind) {
    case 'portal':
      return shell(
        'wrap',
        html`${logo('/portal', 'Sallyport: patients')}${env}${links(bar.links ?? [])}${signOut(bar.who)}`,
      )
    case 'flow':
      return shell(
        bar.width === 'mid' ? 'wrap wrap--mid' : 'wrap wrap--flow',
        html`${logo('/portal', 'Sallyport')}${steps(bar.steps ?? [], bar.current)}`,
      )
    case 'app':
      return shell(
        'wrap',
        html`${logo('/', 'Sallyport demo app', 'Demo app')}${env}${bar.countdown}${endSession(bar)}`,
      )
  }
}

function shell(wrap: string, content: Html): Html {
  return html`<header class="topbar"><div class="${wrap}">${content}</div></header>`
}

function links(all: readonly BarLink[]): Html | undefined {
  if (all.length === 0) return undefined
  return html`<nav class="topbar__nav" aria-label="Main"><ul class="nav">${all.map(
    ({ href, text, current }) =>
      html`<li><a href="${href}"${current === true && html` aria-current="page"`}>${text}</a></li>`,
  )}</ul></nav>`
}

function signOut(who: string | undefined): Html | undefined {
  if (who === undefined) return undefined
  return html`<form class="who" method="post" action="/logout"><span class="who__name">${who}</span><button class="btn btn--text">Sign out</button></form>`
}

function endSession({
  who,
  countdown,
}: {
  readonly who?: string
  readonly countdown?: Html
}): Html | undefined {
  if (who === undefined && countdown === undefined) return undefined
  return html`<form class="who${countdown !== undefined && ' who--next'}" method="post" action="/logout"><span class="who__name">${who}</span><button class="btn btn--text">End session</button></form>`
}

function steps(names: readonly string[], current = 0): Html | undefined {
  if (names.length === 0) return undefined
  return html`<ol class="steps" aria-label="Steps">${names.map((name, at) => step(name, at, current))}</ol>`
}

function step(name: string, at: number, current: number): Html {
  if (at < current) return html`<li>${icon('tick')}<span>${name}</span><span class="sr">, done</span></li>`
  if (at === current)
    return html`<li aria-current="step"><span class="steps__no">${at + 1}</span><span>${name}</span></li>`
  return html`<li><span class="steps__no steps__no--next">${at + 1}</span><span>${name}</span></li>`
}
