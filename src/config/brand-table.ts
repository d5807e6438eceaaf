import { defineFixed, defineOpen } from './setting-row.ts'
import * as types from './setting-types.ts'

export const brandTable = {
  'brand.name': defineFixed({
    name: 'smart.brand.name',
    type: types.shortText(60),
    initial: 'Sallyport',
    about: 'Name of the organization, on every page of the auth server.',
  }),
  'brand.support': defineOpen({
    name: 'smart.brand.support',
    type: types.shortText(200),
    otherwise: 'none',
    about:
      'Whom users ask for help, at the end of every page: `Service desk, 555 0100, help@hospital.example`. An email address or an https URL in it becomes a link.',
  }),
}
