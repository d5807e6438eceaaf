// Shows moments in the reader's time zone. Without this script they are in the zone that the page names.
const options = {
  year: 'numeric',
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
}
const format = new Intl.DateTimeFormat('en-GB', options)
// Each knows the short names of its own zones, and writes others as an offset.
const zones = ['en-GB', 'en-US', 'en-CA', 'en-AU', 'en-NZ', 'en-IN', 'en-ZA'].map(
  locale => new Intl.DateTimeFormat(locale, { timeZoneName: 'short' }),
)

function nameZone(at) {
  const names = zones.map(zone => zone.formatToParts(at).find(({ type }) => type === 'timeZoneName').value)
  return names.find(name => !/[+-]\d/.test(name)) ?? names[0]
}

const FORMS = {
  date: ({ day, month, year }) => `${day}-${month.slice(0, 3)}-${year}`,
  clock: ({ hour, minute }) => `${hour}:${minute}`,
  time: parts => `${FORMS.clock(parts)} ${parts.timeZoneName}`,
  minutes: parts => `${FORMS.date(parts)} ${FORMS.time(parts)}`,
  exact: parts => `${FORMS.clock(parts)}:${parts.second} ${parts.timeZoneName}`,
  seconds: parts => `${FORMS.date(parts)} ${FORMS.exact(parts)}`,
  milliseconds: parts => `${FORMS.clock(parts)}:${parts.second}.${parts.fractionalSecond}`,
}

function show(time) {
  const at = new Date(time.dateTime)
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]))
  parts.timeZoneName = nameZone(at)
  const text = FORMS[time.dataset.moment](parts)
  if (time.textContent !== text) time.textContent = text
  time.title = at.toISOString()
}

function showAll(within) {
  for (const time of within.querySelectorAll('time[data-moment]')) show(time)
  for (const name of within.querySelectorAll('[data-zone-name]'))
    name.textContent = format.resolvedOptions().timeZone
}

showAll(document)
// Pages that are grouped by day begin their days in the reader's zone.
// Browsers without this API, or over plain http off loopback, see the days of the server's zone.
globalThis.cookieStore?.set({
  name: 'sallyport-zone',
  value: encodeURIComponent(format.resolvedOptions().timeZone),
  expires: Date.now() + 365 * 24 * 3_600_000,
  sameSite: 'lax',
})
// Other scripts add moments to the page, or change them.
new MutationObserver(changes => {
  for (const { type, target } of changes)
    if (type === 'childList') showAll(target)
    else if (target.matches('time[data-moment]')) show(target)
}).observe(document.body, { childList: true, subtree: true, attributeFilter: ['datetime'] })
