/** How an organization appears on pages. */
export interface Brand {
  readonly name: string
  /** Whom users ask for help. */
  readonly support?: string | undefined
}

/** Of a server without an organization. */
export const OWN_BRAND: Brand = { name: 'Sallyport' }
