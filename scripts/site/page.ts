import { type Html, html } from '../../src/web/ui/html.ts'
import type { NavigationGroup } from './navigation.ts'
import { linkTo } from './paths.ts'
import type { Heading } from './render.ts'

interface Page {
  readonly path: string
  readonly title: string
  readonly content: Html
  readonly headings: readonly Heading[]
  readonly navigation: readonly NavigationGroup[]
}

export function formatPage({ path, title, content, headings, navigation }: Page): string {
  const to = (target: string) => linkTo(path, target)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Sallyport</title>
<link rel="icon" href="${to('assets/icon.svg')}">
<link rel="stylesheet" href="${to('assets/sallyport.css')}">
<link rel="stylesheet" href="${to('assets/site.css')}">
<script type="module" src="${to('assets/search.js')}"></script>
<script type="module" src="${to('assets/page.js')}"></script>
</head>
<body class="site">
<a class="skip" href="#content">Skip to content</a>
<header class="site-band">
<a class="site-home" href="${to('index.html')}">Sallyport</a>
<a class="site-menu" href="#pages">Pages</a>
<search class="site-search">
<input type="search" id="search" placeholder="Search" aria-label="Search the documentation" autocomplete="off" data-index="${to('pagefind/pagefind.js')}">
<ol id="found" hidden></ol>
</search>
</header>
<div class="site-columns">
<main id="content" class="site-content" data-pagefind-body data-pagefind-weight="${isForMaintainers(path) ? 0.2 : 1}">${content}</main>
${headings.length > 1 && html`<nav class="site-headings" aria-label="On this page"><h2>On this page</h2><ul>${headings.map(({ id, text }) => html`<li><a href="#${id}">${text}</a></li>`)}</ul></nav>`}
<nav class="site-pages" id="pages" aria-label="Pages">${navigation.map(group => formatGroup(group, path))}</nav>
</div>
</body>
</html>
`.markup
}

/** A search finds these pages after the others. */
function isForMaintainers(path: string): boolean {
  return /^(?:docs\/(?:decisions|internal|specification|performance)|vectors|CHANGELOG)/.test(path)
}

function formatGroup({ title, links }: NavigationGroup, path: string): Html {
  const items = links.map(link => {
    const isHere = link.path === path
    return html`<li><a href="${linkTo(path, link.path)}"${isHere && html` aria-current="page"`}>${link.title}</a></li>`
  })
  return html`<h2>${title}</h2><ul>${items}</ul>`
}
