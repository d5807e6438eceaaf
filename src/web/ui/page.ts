import { getAssetUrl } from './assets.ts'
import { type Brand, OWN_BRAND } from './brand.ts'
import { type Action, renderActions, renderContact, renderErrorArt, renderFacts } from './components.ts'
import { renderMoment } from './date.ts'
import { type Html, html, raw } from './html.ts'
import { type Bar, renderTopBar } from './top-bar.ts'
import { version } from './version.ts'

export interface PageOptions {
  /** The title of the tab: `Sign in` becomes `Sign in – Sallyport`. */
  readonly title: string
  /** The text after the dash of the title, if it is not the name of the organization. */
  readonly site?: string | undefined
  readonly brand?: Brand | undefined
  readonly bar: Bar
  /** The patient banner between bar and content. */
  readonly banner?: Html
  readonly width?: 'wide' | 'mid' | 'flow'
  /** Content after `<main>`: the sticky buttons of a flow page, or a line that only print shows. */
  readonly after?: Html
  /** Content of the footer beside the version. */
  readonly footer?: Html
  /** Shows that the patients on the page are fictitious. */
  readonly sampleData?: boolean
  /** Files of `src/web/ui/assets`. The page must work without them. */
  readonly scripts?: readonly string[]
}

const WIDTHS = { wide: 'wrap', mid: 'wrap wrap--mid', flow: 'wrap wrap--flow' } as const

/** Below a bar as wide as the window, a narrow page begins where the bar does, so that pages do not jump. */
const WIDTHS_BELOW_BAR = {
  wide: 'wrap',
  mid: 'wrap wrap--column-mid',
  flow: 'wrap wrap--column-flow',
} as const

/** Renders a whole page: top bar, content, footer. */
export function renderPage(options: PageOptions, body: Html): Html {
  const { bar, banner, after, footer, brand = OWN_BRAND, width = 'wide', sampleData = false } = options
  const hasWideBar = bar.kind !== 'flow'
  const main = (hasWideBar ? WIDTHS_BELOW_BAR : WIDTHS)[width]
  return renderDocument(
    options,
    html`${renderTopBar(bar, { brand, sampleData })}
${banner}
<main id="main" class="${main}">
${body}
</main>
${after}
${renderFooter(hasWideBar ? WIDTHS.wide : main, { brand, sampleData, more: footer })}`,
  )
}

/** Shows times in the reader's zone; `/` leads to the search; a password can be shown. */
const EVERYWHERE = ['time.js', 'search.js', 'password.js'] as const

/** Renders the HTML document without top bar and footer, for pages with their own layout (login). */
export function renderDocument(
  {
    title,
    brand = OWN_BRAND,
    site = brand.name,
    scripts = [],
  }: Pick<PageOptions, 'title' | 'site' | 'brand' | 'scripts'>,
  body: Html,
): Html {
  return html`${raw('<!doctype html>')}
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} – ${site}</title>
<link rel="icon" href="${getAssetUrl('icon.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${getAssetUrl('sallyport.css')}">
${brand.style && html`<link rel="stylesheet" href="${brand.style.url}">`}
${[...EVERYWHERE, ...scripts].map(name => html`<script src="${getAssetUrl(name)}" type="module"></script>`)}
</head>
<body>
<a class="skip" href="#main">Skip to main content</a>
${body}
</body>
</html>
`
}

function renderFooter(
  column: string,
  {
    brand,
    sampleData,
    more,
  }: { readonly brand: Brand; readonly sampleData: boolean; readonly more: Html | undefined },
): Html {
  const { support } = brand
  return html`<footer class="footer"><div class="${column}">${
    support !== undefined && html`<span>Help: ${renderContact(support)}</span>`
  }<span>Sallyport ${version}</span>${
    sampleData && html`<span>Sample patients are fictitious.</span>`
  }${more}</div></footer>`
}

export interface ErrorPageOptions {
  /** `ended`: a normal end, which is no error. */
  readonly kind: 'refused' | 'unavailable' | 'ended'
  readonly title: string
  /** Paragraphs: the effect on the record, and the advice. */
  readonly text: readonly (Html | string)[]
  /** Error code or status, for the support staff. Undefined where nothing failed. */
  readonly code: string | undefined
  /** Contains no token and no patient name. */
  readonly reason?: string | undefined
  /** The request id. */
  readonly reference: string
  /** The page that shows the event with this reference. */
  readonly referenceUrl?: string | undefined
  readonly now: number
  /** The first one is the main button. */
  readonly actions?: readonly Action[]
  /** Further rows of the card, such as the app. */
  readonly facts?: readonly (readonly [label: string, value: Html | string])[]
  /** Content below the actions, such as the state of the servers. */
  readonly more?: Html
  readonly bar?: Bar
  readonly site?: string
  readonly brand?: Brand | undefined
  readonly sampleData?: boolean
}

/** Renders event, effect and advice, then code, time and reference. */
export function renderErrorPage(options: ErrorPageOptions): Html {
  const { title, site, brand, bar = { kind: 'flow' }, sampleData = false } = options
  // The card has the contact.
  const own = brand && { ...brand, support: undefined }
  return renderPage({ title, bar, brand: own, sampleData, width: 'flow', site }, renderError(options))
}

function renderError(options: ErrorPageOptions): Html {
  const { kind, title, text, actions = [], more } = options
  return html`<div class="stop">${renderErrorArt(kind)}<div class="stop__body">
<h1>${title}</h1>
${text.map(paragraph => html`<p>${paragraph}</p>`)}
${actions.length > 0 && renderActions(...actions)}
${more}
<div class="card">${renderFacts(listFacts(options), 'kv--table')}</div>
</div></div>`
}

function listFacts({
  code,
  reason,
  facts = [],
  now,
  reference,
  referenceUrl,
  brand,
}: ErrorPageOptions): (readonly [string, Html | string])[] {
  return [
    ...(code === undefined ? [] : [['Error', html`<code>${code}</code>`] as const]),
    ...(reason === undefined ? [] : [['Reason', reason] as const]),
    ...facts,
    ['Time', renderMoment(now, { form: 'seconds' })],
    [
      'Reference',
      referenceUrl === undefined
        ? html`<code>${reference}</code>`
        : html`<a href="${referenceUrl}" target="_blank"><code>${reference}</code></a>`,
    ],
    ...(brand?.support === undefined ? [] : [['Help', renderContact(brand.support)] as const]),
  ]
}
