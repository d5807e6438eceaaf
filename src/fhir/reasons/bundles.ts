import { share } from './words.ts'

/** Bundles that are not understood. */
export const BUNDLES = share(
  { status: 400, code: 'structure', remedy: 'Correct the Bundle.' },
  {
    'bundle-missing': 'Cannot read body: expected a Bundle',
    'bundle-type-unsupported': 'Cannot process Bundle: expected one of type batch or transaction',
    'bundle-entry-not-a-list': 'Cannot process Bundle: its entry is not a list',
    'entry-without-request': 'Cannot process entry: it has no request',
    'entry-request-incomplete': 'Cannot process entry: its request has no method or url',
    'entry-full-url-unusable': 'Cannot process entry: its fullUrl must be a urn of its own',
    'entries-write-the-same': 'Cannot process transaction: two entries write the same resource',
  },
)
