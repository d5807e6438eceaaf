import { type Html, html } from '../../../../web/ui/index.ts'
import type { AdminRequest } from './route.ts'
import { renderLink } from './shell.ts'

export function renderNextPage({ request }: AdminRequest, path: string, next: string): Html {
  const query = new URLSearchParams(request.url.split('?')[1])
  query.set('after', next)
  return html`<p class="actions after">${renderLink(`${path}?${query}`, 'Next page', 'btn btn--quiet btn--small')}</p>`
}

export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`
}
