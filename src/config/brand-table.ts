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
  'brand.patientContact': defineOpen({
    name: 'smart.brand.patient-contact',
    type: types.shortText(200),
    otherwise: 'the support contact',
    about:
      'Whom patients and relatives ask about a record and who looked at it: `Privacy officer, 555 0101, https://hospital.example/privacy`. The pages for signing in, which staff see too, name only the support contact.',
  }),
  'brand.logo': defineOpen({
    name: 'smart.brand.logo',
    type: types.path,
    otherwise: 'the symbol and the name',
    about:
      'PNG or SVG file, at most 256 kB, for a white background and 32 pixels high. It replaces symbol and name in the top bar and on the sign-in page. An SVG may neither run scripts nor load anything.',
  }),
  'brand.colour': defineOpen({
    name: 'smart.brand.colour',
    type: types.hexColour,
    otherwise: '`#3942b8`',
    about:
      'Colour of buttons, links and choices. Its contrast with every surface of the light theme must be at least 4.5:1 (WCAG AA). A start with less is refused, with a colour of the same hue that has enough.',
  }),
  'brand.darkColour': defineOpen({
    name: 'smart.brand.dark-colour',
    type: types.hexColour,
    otherwise: 'the colour, as light as the dark theme needs',
    about: 'The same for the dark theme. It needs `smart.brand.colour`.',
  }),
}
