import { getAssetUrl } from './assets.ts'
import { type Html, html, raw } from './html.ts'
import { type Bar, renderTopBar } from './top-bar.ts'
import { version } from './version.ts'

export interface PageOptions {
  /** The title of the tab: `Sign in` becomes `Sign in – Sallyport`. */
  readonly title: string
  /** The text after the dash of the title. */
  readonly site?: string
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
  /** Files of `src/web/assets`. The page must work without them. */
  readonly scripts?: readonly string[]
}

const WIDTHS = { wide: 'wrap', mid: 'wrap wrap--mid', flow: 'wrap wrap--flow' } as const

/** Renders a whole page: top bar, content, footer. */
export function renderPage(options: PageOptions, body: Html): Html {
  const { bar, banner, after, footer, width = 'wide', sampleData = false } = options
  return renderDocument(
    options,
    html`${renderTopBar(bar, sampleData)}
${banner}
<main id="main" class="${WIDTHS[width]}">
${body}
</main>
${after}
${renderFooter(WIDTHS[width], sampleData, footer)}`,
  )
}

/** Renders the HTML document without top bar and footer, for pages with their own layout (login). */
export function renderDocument(
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

function renderFooter(column: string, sampleData: boolean, more: Html | undefined): Html {
  return html`<footer class="footer"><div class="${column}"><span>Sallyport ${version}</span>${
    sampleData && html`<span>Sample patients are fictitious.</span>`
  }${more}</div></footer>`
}
