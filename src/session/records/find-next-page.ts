import type { SearchBundle } from './bundle.ts'

/**
 * The URL of a Bundle's next page; `elsewhere` if it is not below the FHIR base, where the token must not be sent (API-12).
 */
export function findNextPage(
  { link = [] }: SearchBundle,
  fhirBaseUrl: string,
):
  | { readonly kind: 'last' }
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'next'; readonly url: string } {
  const next = link.find(({ relation }) => relation === 'next')?.url
  if (next === undefined) return { kind: 'last' }
  const url = URL.parse(next, `${fhirBaseUrl}/`)
  return url && isUnder(url, new URL(fhirBaseUrl)) ? { kind: 'next', url: url.href } : { kind: 'elsewhere' }
}

function isUnder(url: URL, base: URL): boolean {
  return (
    url.origin === base.origin &&
    url.username === '' &&
    (url.pathname === base.pathname || url.pathname.startsWith(`${base.pathname.replace(/\/$/, '')}/`))
  )
}
