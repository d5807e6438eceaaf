import { type Html, html } from './html.ts'
import { type IconName, icon, mark } from './icons.ts'

export type Tone = 'ok' | 'bad' | 'warn'

const TONE_ICONS = { ok: 'tick', bad: 'cross', warn: 'warning' } as const satisfies Record<Tone, IconName>

/** A state in one or two words. `ok` and `bad` have a sign as well, so that colour is never alone. */
export function badge(text: string, tone?: Tone | 'accent'): Html {
  const sign = tone === 'ok' || tone === 'bad' ? icon(TONE_ICONS[tone]) : undefined
  return html`<span class="badge${tone !== undefined && ` badge--${tone}`}">${sign}${text}</span>`
}

/** Bold what happened, then what to do. A `bad` one is read out at once. */
export function alert(what: string, then: Html | string, tone?: Tone): Html {
  return html`<div class="alert${tone !== undefined && ` alert--${tone}`} alert--page"${
    tone === 'bad' && html` role="alert"`
  }>${icon(tone === undefined ? 'note' : TONE_ICONS[tone])}<p><b>${what}</b> ${then}</p></div>`
}

export interface Action {
  readonly href: string
  readonly text: string
}

/** Why it is empty, and one way on. */
export function empty(options: {
  readonly title: string
  readonly text: string
  readonly action?: Action
  /** Names the heading for `aria-labelledby`. */
  readonly id?: string
}): Html {
  const { title, text, action, id } = options
  return html`<div class="empty">${mark('empty__art')}<h2${id !== undefined && html` id="${id}"`}>${title}</h2><p>${text}</p>${
    action && html`<a class="btn btn--quiet btn--small" href="${action.href}">${action.text}</a>`
  }</div>`
}

/** A form field with its label and, when it was wrong, its message. */
export function field(options: {
  readonly name: string
  readonly label: string
  readonly type?: 'text' | 'password' | 'search'
  readonly value?: string
  readonly autocomplete?: string
  readonly required?: boolean
  /** Whether the page opens with the cursor in it. */
  readonly autofocus?: boolean
  readonly error?: string
}): Html {
  const {
    name,
    label,
    type = 'text',
    value,
    autocomplete = 'off',
    required = false,
    autofocus = false,
    error,
  } = options
  return html`<div class="field"><label class="field__label" for="${name}">${label}</label><input class="input" id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" autocapitalize="none" spellcheck="false"${
    value !== undefined && html` value="${value}"`
  }${required && html` required`}${autofocus && html` autofocus`}${
    error !== undefined && html` aria-invalid="true" aria-describedby="${name}-error"`
  }>${error !== undefined && html`<p class="field__error" id="${name}-error">${error}</p>`}</div>`
}
