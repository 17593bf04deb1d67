"""Runs in a process of its own: Scrapy fetches a site on this machine, follows its links and saves the bytes.

python scrapy_saves.py URL FOLDER       prints how many pages were saved
"""

import sys
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor


class Saving(scrapy.Spider):
    name = "saving"
    # Else each foreign link would wait for the DNS of a machine that may have none.
    allowed_domains = ["127.0.0.1"]
    links = LinkExtractor()
    saved = 0

    async def start(self):
        yield scrapy.Request(self.address)

    def parse(self, response):
        (self.folder / f"{Saving.saved}.html").write_bytes(response.body)
        Saving.saved += 1
        yield from response.follow_all(self.links.extract_links(response))


if __name__ == "__main__":
    process = CrawlerProcess({"LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False, "DOWNLOAD_DELAY": 0})
    process.crawl(Saving, address=sys.argv[1], folder=Path(sys.argv[2]))
    process.start()
    print(Saving.saved)
