import { createPages, type Pages } from '../../../fhir-api/index.ts'
import type { Sealer } from '../../../store/index.ts'

/** The name of the parameter that carries a page; another one than an upstream of ours has. */
export const PAGE = '_gateway-page'

/** Gateways that share a secret share their links. */
export function openPages(sealer: Sealer): Pages {
  return createPages(sealer, PAGE, 'paging link of the gateway')
}
