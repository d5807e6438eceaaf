import { getAssetUrl } from './assets.ts'
import { type Bar, renderTopBar } from './bar.ts'
import { type Html, html, raw } from './html.ts'
import { version } from './version.ts'

export interface PageOptions {
  /** Of the tab: `Sign in` becomes `Sign in – Sallyport`. */
  readonly title: string
  /** After the dash of the title. */
  readonly site?: string
  readonly bar: Bar
  /** The patient banner between bar and content. */
  readonly banner?: Html
  readonly width?: 'wide' | 'mid' | 'flow'
  /** The sticky bar with the decision at the end of a flow page, and the line that only print shows. */
  readonly after?: Html
  /** Says that the patients on the page are made up. */
  readonly sampleData?: boolean
  /** Files of `src/web/assets` that make the page livelier. It must work without. */
  readonly scripts?: readonly string[]
}

const WIDTHS = { wide: 'wrap', mid: 'wrap wrap--mid', flow: 'wrap wrap--flow' } as const

/** A whole page: bar, content, footer. */
export function page(options: PageOptions, body: Html): Html {
  const { bar, banner, after, width = 'wide', sampleData = false } = options
  return document(
    options,
    html`${renderTopBar(bar, sampleData)}
${banner}
<main id="main" class="${WIDTHS[width]}">
${body}
</main>
${after}
${footer(sampleData)}`,
  )
}

/** The outer document, for the pages that have their own layout (login). */
export function document(
  { title, site = 'Sallyport', scripts = [] }: Pick<PageOptions, 'title' | 'site' | 'scripts'>,
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
${scripts.map(name => html`<script src="${getAssetUrl(name)}" type="module"></script>`)}
</head>
<body>
<a class="skip" href="#main">Skip to main content</a>
${body}
</body>
</html>
`
}

function footer(sampleData: boolean): Html {
  return html`<footer class="footer"><div class="wrap"><span>Sallyport ${version}</span>${
    sampleData && html`<span>Sample patients are made up.</span>`
  }</div></footer>`
}
