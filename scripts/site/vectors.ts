import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Html, html } from '../../src/web/html.ts'

interface VectorPage {
  readonly path: string
  readonly title: string
  readonly content: Html
}

/** Members that every vector of a file may have, in the order in which they are shown. */
type Vector = Readonly<Record<string, unknown>> & { readonly id: string; readonly why?: string }

/** One page for each file of decision vectors, one row for each vector. */
export function formatVectorPages(folder: string): readonly VectorPage[] {
  return readdirSync(folder)
    .filter(name => name.endsWith('.json'))
    .map(name => {
      const { description, ...file } = JSON.parse(readFileSync(join(folder, name), 'utf8'))
      const vectors = Object.values(file).filter(isVectors).flat()
      const title = `Decision vectors: ${name.replace('.json', '')}`
      return {
        path: `vectors/${name.replace('.json', '.html')}`,
        title,
        content: html`<h1>${title}</h1>
<p>${description} ${vectors.length} vectors of <code>vectors/${name}</code>. <a href="index.html">What the members mean</a></p>
${vectors.map(formatVector)}`,
      }
    })
}

function isVectors(value: unknown): value is readonly Vector[] {
  return Array.isArray(value) && value.every(item => typeof item?.id === 'string')
}

function formatVector({ id, why, ...members }: Vector): Html {
  return html`<details class="vector" id="${id}"><summary><code>${id}</code> ${why}</summary>
<dl>${Object.entries(members).map(([name, value]) => html`<dt>${name}</dt><dd><code>${typeof value === 'string' ? value : JSON.stringify(value)}</code></dd>`)}</dl></details>`
}
